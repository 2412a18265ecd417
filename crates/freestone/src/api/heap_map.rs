//! Where the heap is: what a tracer has to know to tell live blocks from outside the process.
//!
//! `freestone leaks` stops a process, looks for [`MAGIC`] in the writable memory of its modules, and reads the heap from there: it needs neither
//! a symbol, which a program may be stripped of, nor any code to run in the process, which may be ending, or may have been killed.
//!
//! The runs of pages lie one behind the other from page 1 on: the record of a run's first page has its kind and its number of pages, and that of
//! the page behind the last run has no pages, if it is in memory. A block is live, and the program's, if
//!
//! ```text
//!  small   its span's record has the kind `kind_small`, and its entry in the page map is not 0: it is no run taken ahead; the bit of its OS page
//!          in `fresh` is clear, and its bit in the bitmap; and the 32 bits at `mark_offset` in it are not `mark`: it is in no bin, in no buffer
//!          and not in transit. If the 32 bits behind a mark are positive and a multiple of `stretch_unit`, they are so many times a number of
//!          blocks, which lie beside each other from the marked one on and are in transit: nothing is known of the others' contents.
//!          In a span whose record says at `watched` that it is a watched heap's, what the block's trailer says holds instead of marks:
//!          it is in no quarantine and no magazine either. Trailers are mixed with the two words at `secret` (`span::trailer::is_free_by_trailer`)
//!  large   its record has the kind `kind_large`, and its entry in the page map is `entry_large`: it is in no cache
//! ```
//!
//! This is exact while the process's hardening is at its default, whatever the level of explicit heaps. With hardening off, free blocks have no marks; in
//! processes above the default it was not tried. `docs/decisions/0031-the-heap-is-read-from-outside.md` has the reasons.
//!
//! Of the blocks that the heap profile has sampled, the stack is known, too: an entry in the table of live samples has the address of the block and the
//! number of its stack, and an entry in the table of stacks where its return addresses are.
//!
//! All fields are 64-bit words, so that their places do not depend on a compiler. Invariant: `base` is the last word that is written.

use crate::heap_profile::{live_table, recorder, stack_table};
use crate::shared::Shared;
use crate::size_class::{BLOCK_BYTES, N_CLASSES};
use crate::span::free_node::{MARK, MARK_OFFSET, STRETCH_UNIT};
use crate::span::record::Kind;
use crate::span::{Entry, PageIndex, Span, layout};
use core::mem::{offset_of, size_of};
use freestone_base::sync::{AtomicU64, Ordering};
use freestone_base::units::PAGE_BYTES;
use freestone_os::Os;

/// How the map begins: found by chance in no program.
pub const MAGIC: [u64; 2] = [0x6672_6565_7374_6f6e, 0xb5c1_93d7_2e64_8af9];

/// The version of the fields and of trailers; another one is another order, or another trailer.
pub const VERSION: u64 = 3;

/// See the module header. What is no atomic never changes.
#[derive(Debug)]
#[repr(C)]
pub(super) struct HeapMap {
    magic: [u64; 2],
    version: u64,
    /// Address of page 0; 0 before the heap has started.
    base: AtomicU64,
    /// Number of pages.
    n_pages: AtomicU64,
    /// Addresses of the records, the bitmaps and the page map, each of page 0; and the end of all metadata. The tables are committed for the
    /// pages below the high-water mark at least, and zero above it.
    tables: [AtomicU64; 4],
    /// Bytes of an OS page.
    os_page_bytes: AtomicU64,
    /// The level of hardening, as its place among the words of the option.
    harden: AtomicU64,
    /// Where the secret of watched heaps is.
    secret: AtomicU64,
    /// Where the address of the heap profile's tables is.
    profile: AtomicU64,
    /// Where its tables are from there, and its entries in them.
    profile_places: [u64; N_PROFILE],
    constants: [u64; N_CONSTANTS],
    block_bytes: [u64; N_CLASSES],
}

/// The number of constants, and behind them the number of classes.
const N_CONSTANTS: usize = 15;

/// The number of constants of the heap profile.
const N_PROFILE: usize = 12;

/// The map of the process's heap, in its writable data.
#[used]
static HEAP_MAP: HeapMap = HeapMap {
    magic: MAGIC,
    version: VERSION,
    base: AtomicU64::new(0),
    n_pages: AtomicU64::new(0),
    tables: [const { AtomicU64::new(0) }; 4],
    os_page_bytes: AtomicU64::new(0),
    harden: AtomicU64::new(0),
    secret: AtomicU64::new(0),
    profile: AtomicU64::new(0),
    profile_places: profile_places(),
    constants: [
        PAGE_BYTES as u64,
        size_of::<Span>() as u64,
        layout::BITMAP_BYTES as u64,
        offset_of!(Span, pages) as u64,
        offset_of!(Span, fresh) as u64,
        offset_of!(Span, kind) as u64,
        offset_of!(Span, class) as u64,
        offset_of!(Span, is_watched) as u64,
        Kind::Small as u64,
        Kind::Large as u64,
        Entry::LARGE.bits() as u64,
        MARK as u64,
        MARK_OFFSET as u64,
        STRETCH_UNIT as u64,
        N_CLASSES as u64,
    ],
    block_bytes: {
        let mut bytes = [0; N_CLASSES];
        let mut class = 0;
        while class < N_CLASSES {
            bytes[class] = BLOCK_BYTES[class] as u64;
            class += 1;
        }
        bytes
    },
};

/// The places of the heap profile's tables and of what is in them: the recorder's, the stack table's, the live table's.
const fn profile_places() -> [u64; N_PROFILE] {
    let tables: [&[usize]; 3] = [&recorder::PLACES, &stack_table::PLACES, &live_table::PLACES];
    let mut places = [0; N_PROFILE];
    let (mut table, mut at, mut n) = (0, 0, 0);
    while table < tables.len() {
        while at < tables[table].len() {
            places[n] = tables[table][at] as u64;
            (at, n) = (at + 1, n + 1);
        }
        (at, table) = (0, table + 1);
    }
    assert!(n == N_PROFILE);
    places
}

/// Enters the address range, which has been opened, and the level of hardening.
pub(super) fn publish<O: Os>(shared: &Shared<O>) {
    let layout = shared.pages.layout();
    let first = PageIndex(0);
    let (storage, storage_bytes) = layout.storage();
    let end = storage.addr() + storage_bytes;
    let tables = [layout.record(first).addr(), layout.bitmap(first).addr(), layout.map.start().addr(), end];
    let store = |word: &AtomicU64, number: usize| word.store(number as u64, Ordering::Release);
    HEAP_MAP.tables.iter().zip(tables).for_each(|(word, address)| store(word, address));
    store(&HEAP_MAP.n_pages, layout.n_pages);
    store(&HEAP_MAP.os_page_bytes, shared.os().os_page_bytes());
    store(&HEAP_MAP.secret, (&raw const shared.secret).addr());
    store(&HEAP_MAP.profile, shared.profile.place_of_tables().addr());
    store(&HEAP_MAP.harden, shared.settings().harden() as usize);
    store(&HEAP_MAP.base, layout.base.addr());
}
