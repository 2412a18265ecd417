//! Finding the window, and committing records, bitmaps and page map as the pages they describe come into use.
#![allow(unsafe_code)]
//!
//! ```text
//!  bitmaps   ████████████████░░░░░░···        █ for pages below the frontier
//!  records   ██████░░···                      ░ ahead of it
//!  page map  █░░░░░···                        · not mapped
//! ```
//!
//! `docs/decisions/0016-what-is-committed-when.md` has the reasons. Each of the three arrays is committed from its start up to a watermark of its own, in whole OS pages. A step goes half as far again as
//! is needed, so that the number of steps is logarithmic in the size of the heap: 14 to the first GiB. Where that is refused it goes just
//! as far as is needed. Metadata is 580 bytes for 65,536, less than a hundredth; ahead of need is less than a two-hundredth.
//!
//! A window is tried out where the kernel, or chance, proposes one; half as large, and again, as long as none is to be had: not for
//! limits (nothing in a window counts against any before it is committed), but for processors with few address bits.
//!
//! # Safety
//! What is committed here lies in the window that was just laid out, which nobody else knows of yet, or beyond the watermarks, which are
//! changed under the page heap's lock.

use crate::span::layout::{BITMAP_BYTES, PAGES_UNIT};
use crate::span::{Kind, Layout, Span};
use freestone_base::align;
use freestone_base::units::PAGE_BYTES;
use freestone_os::{Errno, Os};

/// Windows smaller than this are not worth trying: one unit of pages with its metadata.
const WINDOW_BYTES_LEAST: usize = PAGES_UNIT * PAGE_BYTES + (1 << 20);

/// Metadata is there for this many pages at first: one OS page of records, 4 MiB of pages.
const PAGES_FIRST: usize = 64;

/// Metadata is committed ahead for this part of the pages that it is needed for.
const AHEAD_SHARE: usize = 2;

/// And for at most this many: 1 GiB of pages, 9 MiB of metadata.
const AHEAD_PAGES_MOST: usize = 16384;

/// How much of each array is committed: bytes from its start, whole OS pages.
#[derive(Clone, Copy, Debug)]
pub struct Committed {
    bitmaps: usize,
    records: usize,
    map: usize,
}

impl Committed {
    /// Nothing.
    pub const NONE: Self = Self { bitmaps: 0, records: 0, map: 0 };

    /// Pages that have a record, a bitmap and an entry.
    fn pages(&self) -> usize {
        (self.bitmaps / BITMAP_BYTES).min(self.records / size_of::<Span>()).min(self.map / size_of::<u32>())
    }

    /// Bytes in all.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bitmaps + self.records + self.map
    }

    /// Pages of the window that have an entry.
    #[must_use]
    pub fn reach(&self, layout: &Layout) -> usize {
        (self.map / size_of::<u32>()).min(layout.n_pages)
    }

    /// Sees to the metadata of the first `n_pages`, and ahead of that if that is to be had.
    ///
    /// # Errors
    /// The kernel's; what was committed stays so, and is counted.
    pub fn extend<O: Os>(&mut self, os: &O, layout: &Layout, n_pages: usize) -> Result<(), Errno> {
        if n_pages <= self.pages() {
            return Ok(());
        }
        let ahead = (n_pages / AHEAD_SHARE).clamp(PAGES_FIRST, AHEAD_PAGES_MOST);
        let wanted = (n_pages + ahead).min(layout.n_pages);
        self.extend_to(os, layout, wanted).or_else(|_| self.extend_to(os, layout, n_pages))
    }

    /// Commits what is missing for the first `n_pages`, the longest array first: when it is refused, nothing was taken in vain.
    fn extend_to<O: Os>(&mut self, os: &O, layout: &Layout, n_pages: usize) -> Result<(), Errno> {
        let arrays = [
            (&mut self.bitmaps, layout.bitmap(0).cast(), BITMAP_BYTES),
            (&mut self.records, layout.record(0).cast(), size_of::<Span>()),
            (&mut self.map, layout.map.start(), size_of::<u32>()),
        ];
        for (committed, start, bytes_each) in arrays {
            let wanted = align::up(n_pages * bytes_each, os.os_page_bytes());
            if wanted > *committed {
                // SAFETY: see the module header; the array ends inside the window, rounded up to whole pages (`Layout::new`).
                unsafe { os.commit(start.wrapping_add(*committed), wanted - *committed, true) }.map_err(not_ours)?;
                *committed = wanted;
            }
        }
        Ok(())
    }

    /// Releases everything.
    fn release<O: Os>(&self, os: &O, layout: &Layout) {
        let arrays = [
            (self.bitmaps, layout.bitmap(0).cast::<u8>()),
            (self.records, layout.record(0).cast()),
            (self.map, layout.map.start()),
        ];
        for (committed, start) in arrays.into_iter().filter(|(committed, _)| *committed > 0) {
            // SAFETY: committed by `extend_to`, and nobody uses it yet.
            let _ = unsafe { os.release(start, committed) };
        }
    }
}

/// Something in the way of metadata cannot be stepped over: it is as if there were no memory.
fn not_ours(errno: Errno) -> Errno {
    if errno == Errno::EXIST { Errno::NOMEM } else { errno }
}

/// Finds a window whose first metadata can be committed, and commits it.
pub fn open<O: Os>(os: &O) -> Option<(Layout, Committed)> {
    let mut bytes = os.window_bytes_wanted();
    while bytes >= WINDOW_BYTES_LEAST {
        let mut attempt = 0;
        while let Some(base) = os.propose_window(bytes, attempt) {
            if let Some(layout) = Layout::new(base, bytes)
                && let Some(committed) = try_out(os, &layout)
            {
                return Some((layout, committed));
            }
            attempt += 1;
        }
        bytes /= 2;
    }
    None
}

fn try_out<O: Os>(os: &O, layout: &Layout) -> Option<Committed> {
    let mut committed = Committed::NONE;
    if committed.extend_to(os, layout, PAGES_FIRST).is_err() {
        committed.release(os, layout);
        return None;
    }
    // SAFETY: the record was committed just now. Page 0 is nobody's neighbour; writing its record first spares the fault of reading it first.
    unsafe { (*layout.record(0)).kind.set(Kind::Metadata) };
    Some(committed)
}

#[cfg(test)]
mod tests;
