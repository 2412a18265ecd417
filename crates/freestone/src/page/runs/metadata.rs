//! The metadata of pages: records, bitmaps and page map, and how far each is committed; and the storage for what else the heap keeps.
#![allow(unsafe_code)]
//!
//! ```text
//!  bitmaps   ████████████████░···        █ for pages below the high-water mark
//!  records   ██████░···                  ░ up to the end of the OS page
//!  page map  █░░░···                     · not mapped
//! ```
//!
//! Each of the three arrays is committed from its start up to a watermark of its own, in whole OS pages, as far as the pages at the high-water
//! mark need it. The arena grows in steps that lengthen with it (`page::policy::growth`), so these do as well. Metadata is 580 bytes for 65,536, less
//! than a hundredth. The memory of bitmaps goes back with that of their pages (`page::transitions`): outside small spans they are zero. Nothing is committed ahead of need, because it would count against a limit of address space.
//! `docs/decisions/0016-what-is-committed-when.md` has the reasons.
//!
//! # Safety
//! What is committed here lies beyond the watermarks, where the heap has mapped nothing yet; they are changed under the page heap's lock, or
//! before any other thread can reach the address range.

use crate::span::layout::BITMAP_BYTES;
use crate::span::{Layout, PageIndex, Span};
use freestone_base::align;
use freestone_os::{Errno, Os, Prefault};

/// Metadata is committed for this many pages at first: one OS page of records, 4 MiB of pages.
const PAGES_FIRST: usize = 64;

/// Storage gets its memory when it is committed if it is no longer than this: a thread's heap, which is written everywhere at once.
const POPULATED_MOST: usize = 16 << 10;

/// The three arrays of an address range, and how much of each is committed: bytes from its start, whole OS pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataArrays {
    layout: Layout,
    bitmaps: usize,
    records: usize,
    map: usize,
    storage: usize,
}

impl MetadataArrays {
    /// No address range.
    pub(super) const NONE: Self = Self::uncommitted(Layout::EMPTY);

    const fn uncommitted(layout: Layout) -> Self {
        Self { layout, bitmaps: 0, records: 0, map: 0, storage: 0 }
    }

    /// Commits the first metadata of an unused address range; `None`, and nothing stays mapped, if the kernel refuses.
    pub(in crate::page) fn begin<O: Os>(os: &O, layout: Layout) -> Option<Self> {
        let mut arrays = Self::uncommitted(layout);
        if arrays.extend(os, PAGES_FIRST).is_err() {
            arrays.release(os);
            return None;
        }
        // The first span writes to both at once.
        for (start, bytes) in [(layout.record(PageIndex(0)).cast(), arrays.records), (layout.map.start(), arrays.map)] {
            // SAFETY: the bytes were committed just now, in whole OS pages.
            let _ = unsafe { os.prefault(start, bytes, Prefault::Populate) };
        }
        Some(arrays)
    }

    /// Where the arrays are.
    pub(in crate::page) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The number of pages that have a record, a bitmap and an entry, from page 0 on.
    pub(super) fn pages(&self) -> usize {
        (self.bitmaps / BITMAP_BYTES).min(self.records / size_of::<Span>()).min(self.map / size_of::<u32>())
    }

    /// The number of pages that have an entry in the page map, from page 0 on.
    pub(in crate::page) fn reach(&self) -> usize {
        (self.map / size_of::<u32>()).min(self.layout.n_pages)
    }

    /// Committed bytes in all.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bitmaps + self.records + self.map + self.storage
    }

    /// Commits the first `bytes` of the storage, in whole OS pages.
    ///
    /// # Errors
    /// The kernel's, or there is no more.
    pub(super) fn extend_storage<O: Os>(&mut self, os: &O, bytes: usize) -> Result<(), Errno> {
        let ((start, most), wanted) = (self.layout.storage(), align::up(bytes, os.os_page_bytes()));
        if wanted > most {
            return Err(Errno::NOMEM);
        }
        if wanted > self.storage {
            let (next, more) = (start.wrapping_add(self.storage), wanted - self.storage);
            // SAFETY: the bytes lie in the storage, beyond its watermark, where nothing of ours is mapped.
            unsafe { os.commit(next, more, true) }.map_err(as_no_memory)?;
            if more <= POPULATED_MOST {
                // SAFETY: the bytes were committed just now, in whole OS pages.
                let _ = unsafe { os.prefault(next, more, Prefault::Populate) };
            }
            self.storage = wanted;
        }
        Ok(())
    }

    /// Commits the metadata of the first `n_pages`, the longest array first: if the kernel refuses that, no other was committed for nothing.
    ///
    /// # Errors
    /// The kernel's, or the address range has fewer pages; what was committed stays so, and is counted.
    pub(super) fn extend<O: Os>(&mut self, os: &O, n_pages: usize) -> Result<(), Errno> {
        if n_pages > self.layout.n_pages {
            return Err(Errno::NOMEM);
        }
        let arrays = [
            (&mut self.bitmaps, self.layout.bitmap(PageIndex(0)).cast(), BITMAP_BYTES),
            (&mut self.records, self.layout.record(PageIndex(0)).cast(), size_of::<Span>()),
            (&mut self.map, self.layout.map.start(), size_of::<u32>()),
        ];
        for (committed, start, bytes_each) in arrays {
            let wanted = align::up(n_pages * bytes_each, os.os_page_bytes());
            if wanted > *committed {
                // SAFETY: The range lies beyond the array's watermark, where nothing of ours is mapped, and inside the address range: the array
                // ends there even when it is rounded up to OS pages of any size (`Layout::new`).
                unsafe { os.commit(start.wrapping_add(*committed), wanted - *committed, true) }
                    .map_err(as_no_memory)?;
                *committed = wanted;
            }
        }
        Ok(())
    }

    /// Releases everything.
    fn release<O: Os>(&self, os: &O) {
        let arrays = [
            (self.bitmaps, self.layout.bitmap(PageIndex(0)).cast::<u8>()),
            (self.records, self.layout.record(PageIndex(0)).cast()),
            (self.map, self.layout.map.start()),
        ];
        for (committed, start) in arrays.into_iter().filter(|(committed, _)| *committed > 0) {
            // SAFETY: `extend_to` committed these bytes, and no page of the address range was handed out yet: no code uses them.
            let _ = unsafe { os.release(start, committed) };
        }
    }
}

/// Metadata cannot step over a foreign mapping: that counts as a lack of memory.
fn as_no_memory(errno: Errno) -> Errno {
    if errno == Errno::EXIST { Errno::NOMEM } else { errno }
}

#[cfg(test)]
mod tests;
