//! The thread heap: the parts that a heap is composed of, and the two proofs that let a thread use them.
//!
//! ```text
//!  ThreadHeap   what any thread may read of a heap: its number, its mailbox, its counters
//!   │ HeapFront  its first part: what the hot paths need
//!   │    ▲
//!   │    └── Current   the front of this thread's heap, or a placeholder
//!   ▲
//!   └─────── Own       a heap that is alive and this thread's: everything
//! ```
//!
//! `bins` come first in the front: `hotpath.golden` has their offsets.
//!
//! Invariants
//! - A heap has one thread at a time: the thread that it was created for, or the thread that holds the gate in front of it. Only that thread has an
//!   [`Own`](own::Own) or a [`Current`](own::Current) of it.
//! - Zero is a valid value of every field of a heap that is not yet created: a record's first use writes only fields that are not zero, the heads of the bins
//!   and a few numbers in its first OS page, so that an OS page of the record that no size class in use needs costs no memory.
//! - A watched heap (`watched`) keeps its bins empty and without room, the lookup in them empty, and its large-run cache closed: every hot path
//!   leaves it as it leaves a placeholder.
//! - A placeholder stands for the heap of a thread that has none. It is a front with no heap behind it. Its bins are empty and have no room, its tag is in
//!   no page map entry, and its large-run cache has no open slot: every hot path leaves it by a branch that it has anyway, and never writes to it.
//!
//! `ThreadHeap` is shared between threads although most of its fields are cells: they are private, and reached only through the proofs
//! ([`own`]). The methods of `ThreadHeap` itself read atomics, or fields that are written at creation under the registry's lock.

use crate::page::LargeRunCache;
use crate::shared::Shared;
use crate::span::Generation;
use crate::thread::accounts::Accounts;
use crate::thread::bins::Bins;
use crate::thread::burst::BurstPolicy;
use crate::thread::growth::GrownBlocks;
use crate::thread::mailbox::{Life, Mailbox};
use crate::thread::profile_countdowns::ProfileCountdowns;
use crate::thread::records::{Record, RecordLinks};
use crate::thread::remote_frees::RemoteFrees;
use crate::thread::span_purge::SpanPurge;
use crate::thread::spans::OwnedSpans;
use crate::thread::spans_ahead::SpansAhead;
use crate::thread::spare::{Spare, ThreadNote};
use crate::thread::ticks::Ticks;
use crate::thread::watched::seat::WatchSeat;
use core::cell::Cell;
use core::mem::offset_of;
use core::ptr;
use freestone_base::sync::{AtomicU32, Ordering};
use freestone_os::Os;

/// What the hot paths need of a heap; a placeholder has nothing else.
#[repr(C, align(64))]
pub(crate) struct HeapFront<O: Os + 'static> {
    bins: Bins,
    cache: LargeRunCache,
    watched: WatchSeat,
    shared: Cell<*const Shared<O>>,
    number: Cell<u32>,
}

/// A heap of one thread, or of the threads that take turns behind a gate. See the module header.
///
/// Wide because: each part that a heap is composed of is a field.
#[repr(C)]
pub(crate) struct ThreadHeap<O: Os + 'static> {
    front: HeapFront<O>,
    spans: OwnedSpans,
    remote: RemoteFrees,
    burst: BurstPolicy,
    purge: SpanPurge,
    accounts: Accounts,
    ticks: Ticks,
    profile: ProfileCountdowns,
    generation: AtomicU32,
    thread: ThreadNote,
    links: RecordLinks<Self>,
    ahead: SpansAhead,
    grown: GrownBlocks,
}

const _: () = assert!(offset_of!(ThreadHeap<freestone_os::System>, front) == 0);
const _: () = assert!(offset_of!(HeapFront<freestone_os::System>, bins) == 0);

impl<O: Os> core::fmt::Debug for ThreadHeap<O> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ThreadHeap {}", self.number())
    }
}

impl<O: Os + 'static> Record for ThreadHeap<O> {
    fn links(&self) -> &RecordLinks<Self> {
        &self.links
    }
}

impl<O: Os + 'static> Spare for ThreadHeap<O> {
    fn thread_note(&self) -> &ThreadNote {
        &self.thread
    }
}

/// A heap's counts of a class. Read by another thread, the numbers may be off by what the heap's thread is doing at the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassCounts {
    /// Blocks allocated, ever.
    pub(crate) allocs: u64,
    /// Blocks freed, ever, those of other owners included.
    pub(crate) frees: u64,
    /// Of these, blocks of other owners.
    pub(crate) remote_frees: u64,
    /// Blocks taken out of spans, less those given back.
    pub(crate) out: i64,
    /// Blocks in the bin.
    pub(crate) in_bin: i64,
}

impl<O: Os + 'static> HeapFront<O> {
    /// What stands for the heap of threads that have none.
    #[must_use]
    pub(crate) const fn placeholder() -> Self {
        Self {
            bins: Bins::empty(),
            cache: LargeRunCache::new(),
            watched: WatchSeat::empty(),
            shared: Cell::new(ptr::null()),
            number: Cell::new(0),
        }
    }

    /// Whether this is a placeholder.
    #[inline]
    fn is_placeholder(&self) -> bool {
        self.shared.get().is_null()
    }

    /// The number of its heap, for reports.
    #[inline]
    fn number(&self) -> u32 {
        self.number.get()
    }

    /// Numbers a record that was never used, or a placeholder.
    pub(crate) fn set_number(&self, number: u32) {
        self.number.set(number);
    }
}

impl<O: Os + 'static> ThreadHeap<O> {
    /// What the hot paths need of it.
    pub(crate) fn front(&self) -> &HeapFront<O> {
        &self.front
    }

    /// Its number, for reports.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        self.front.number()
    }

    /// The kernel's number of its thread, or 0.
    pub(crate) fn thread_id(&self) -> u32 {
        self.thread.kernel_id.load(Ordering::Relaxed)
    }

    /// Notes the kernel's number of its thread; 0 if that is not known.
    pub(crate) fn set_thread_id(&self, id: u32) {
        self.thread.kernel_id.store(id, Ordering::Relaxed);
    }

    /// Pages of spans that it has taken from the page heap and not given back.
    pub(crate) fn span_pages(&self) -> u64 {
        self.spans.n_pages()
    }

    /// The generation of the record's current or last heap.
    #[inline]
    pub(crate) fn generation(&self) -> Generation {
        Generation::numbered(self.generation.load(Ordering::Relaxed))
    }

    /// The heap's mailbox, for other threads.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        self.remote.mailbox()
    }

    /// Whether the heap is alive.
    pub(crate) fn life(&self) -> Life {
        self.remote.mailbox().life()
    }

    /// The heap's counts of a class.
    pub(crate) fn counts(&self, class: usize) -> ClassCounts {
        let remote_frees = self.front.bins.remote_frees(class);
        ClassCounts {
            allocs: self.front.bins.allocs(class),
            frees: self.front.bins.frees(class) + remote_frees,
            remote_frees,
            out: self.spans.of(class).n_out(),
            in_bin: self.front.bins.len_elsewhere(class),
        }
    }

    /// Large blocks allocated and freed without the large-run cache, ever.
    pub(crate) fn large_allocs_and_frees(&self) -> (u64, u64) {
        self.accounts.large_allocs_and_frees()
    }

    /// Times that blocks of other owners were handed over, ever.
    pub(crate) fn n_handovers(&self) -> u64 {
        self.remote.n_handovers()
    }

    /// Goes on with another thread, which has not called its exit hook. For the holder of the registry's lock.
    pub(crate) fn change_thread(&self) {
        self.thread.exit_rounds.set(0);
        self.profile.change_thread();
    }

    /// What the heap has if it is watched. Any thread may read its counters.
    pub(crate) fn watched(&self) -> &WatchSeat {
        &self.front.watched
    }

    /// How far it is from the next samples of the heap profile. For its thread.
    pub(crate) fn profile_countdowns(&self) -> &ProfileCountdowns {
        &self.profile
    }

    /// The large-run cache. Any thread may read its counters, and close its slots under the page heap's lock.
    pub(crate) fn cache(&self) -> &LargeRunCache {
        &self.front.cache
    }
}

pub(crate) mod own;
