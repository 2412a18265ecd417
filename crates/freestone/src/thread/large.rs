//! Blocks that are page runs: everything above the largest size class, and everything aligned beyond it.
#![allow(unsafe_code)]
//!
//! A large block starts on a page (64 KiB) and is whole pages long; only the OS pages that are written get memory. It belongs to no
//! thread: any thread frees it, onto its shelf (`page::large_cache`) or under the page heap's lock. Growing takes the free run behind it where
//! there is one.
//!
//! # Safety
//! As stated at each function; pages passed in start large blocks that are the caller's.

use crate::page::{Moved, OwnedRun, Run, check_interval};
use crate::span::Kind;
use crate::thread::ThreadHeap;
use core::ptr;
use freestone_base::units::{Bytes, Millis, PAGE_BYTES, PAGE_BYTES_LOG2, Pages};
use freestone_os::Os;

/// A block, just allocated.
#[derive(Clone, Copy, Debug)]
pub struct LargeBlock {
    /// Its first byte, or null.
    pub start: *mut u8,
    /// Whether all of it reads as zero.
    pub zero: bool,
}

impl LargeBlock {
    /// No memory.
    pub const NONE: Self = Self { start: ptr::null_mut(), zero: false };
}

impl<O: Os + 'static> ThreadHeap<O> {
    /// Allocates a large block of at least `size` bytes, aligned to `align` (a power of two); its start is null when memory runs out.
    #[cold]
    #[must_use]
    pub(crate) fn allocate_large(&self, size: usize, align: usize) -> LargeBlock {
        let align_pages = (align >> PAGE_BYTES_LOG2).max(1);
        let (Some(Pages(n_pages)), Ok(align_pages)) = (Bytes(size.max(1)).to_pages(), u32::try_from(align_pages))
        else {
            return LargeBlock::NONE;
        };
        if align_pages == 1 {
            let start = self.allocate_kept(size);
            if !start.is_null() {
                return LargeBlock { start, zero: false };
            }
            self.shelf.note_wanted(n_pages);
        }
        if !self.may_have(n_pages) {
            return LargeBlock::NONE;
        }
        // SAFETY: only heaps that are alive allocate.
        let run = unsafe { self.shared() }.pages.allocate(n_pages, align_pages, Kind::Large);
        self.enter_large(run)
    }

    /// Allocates a large block of at least `size` bytes from the shelf; null if there is none, and on `nobody`.
    #[inline(always)]
    #[must_use]
    pub(crate) fn allocate_kept(&self, size: usize) -> *mut u8 {
        let Some(Pages(n_pages)) = Bytes(size).to_pages() else { return ptr::null_mut() };
        // SAFETY: heaps are used by their threads; what is on the shelf is in this window.
        let Some(page) = (unsafe { self.shelf.take(self.view().map(), n_pages) }) else { return ptr::null_mut() };
        let unpublished = self.unpublished_large.get() + Pages(n_pages).to_bytes().0 as i64;
        self.unpublished_large.set(unpublished);
        if unpublished > 0 {
            self.publish_large(0);
        }
        self.view().page_start(page)
    }

    /// Frees the large block at `page` onto the shelf; `false` if there is no room for it.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::free_large`].
    #[inline(always)]
    unsafe fn free_kept(&self, page: u32) -> bool {
        // SAFETY: the caller's promise; a heap with an open slot is alive.
        unsafe {
            let Some(n_pages) = self.shelf.put(&self.layout(), page) else { return false };
            self.note_kept(n_pages);
            let shared = self.shared();
            let now_ms = shared.os().now_ms() as u32;
            let age_ms = now_ms.wrapping_sub(self.last_look_ms.get());
            if shared.settings().decay_ms().is_some_and(|decay_ms| age_ms >= check_interval(Millis(decay_ms)).0) {
                self.look(now_ms);
            }
        }
        true
    }

    /// Notes that the program no longer holds `n_pages`, which are on the shelf. The shared count is told with the next change there:
    /// for the next block of this length nothing will have changed.
    fn note_kept(&self, n_pages: u32) {
        self.unpublished_large.set(self.unpublished_large.get() - Pages(n_pages).to_bytes().0 as i64);
    }

    /// Looks for what is too old: frees that do not need the page heap are activity, too.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::free_large`].
    #[cold]
    #[inline(never)]
    unsafe fn look(&self, now_ms: u32) {
        self.last_look_ms.set(now_ms);
        // SAFETY: the caller's promise.
        unsafe {
            self.tick(now_ms);
            self.shared().pages.purge_due_now();
        }
    }

    /// Tells the shared count what the program holds now in large blocks: what is not told yet, and a change.
    #[cold]
    pub(crate) fn publish_large(&self, change_bytes: i64) {
        // SAFETY: only heaps that are alive allocate and free.
        unsafe { self.shared() }.usage.publish_live(self.unpublished_large.replace(0) + change_bytes);
    }

    /// Allocates a large block of at least `size` bytes with room behind it to grow, if that is to be had.
    #[cold]
    #[must_use]
    pub(crate) fn allocate_roomy(&self, size: usize) -> LargeBlock {
        let Some(Pages(n_pages)) = Bytes(size).to_pages() else { return LargeBlock::NONE };
        if !self.may_have(n_pages) {
            return LargeBlock::NONE;
        }
        // SAFETY: as above.
        let run = unsafe { self.shared() }.pages.allocate_with_growth_room(n_pages);
        if run.is_none() {
            return self.allocate_large(size, 1);
        }
        self.enter_large(run)
    }

    /// Makes a run a block of this heap.
    fn enter_large(&self, run: Option<Run>) -> LargeBlock {
        let Some(run) = run else { return LargeBlock::NONE };
        // SAFETY: only heaps that are alive allocate.
        let shared = unsafe { self.shared() };
        if self.is_explicit() {
            // SAFETY: the block is ours, and records of heaps stay where they are.
            unsafe { shared.pages.list_large(&OwnedRun::at(run.page), self.large.pinned()) };
        }
        self.publish_large(Pages(run.n_pages).to_bytes().0 as i64);
        LargeBlock { start: shared.pages.layout().page_start(run.page), zero: run.zero }
    }

    /// Moves the contents of one large block to another by moving the memory behind them, and frees the first.
    ///
    /// # Safety
    /// - Both start large blocks that are the caller's, the second not shorter; nobody uses what [`Moved`] says is freed.
    pub unsafe fn relocate_large(&self, from: u32, to: u32) -> Moved {
        // SAFETY: the caller's promise.
        unsafe {
            let shared = self.shared();
            let [from_bytes, to_bytes] = [from, to].map(|page| self.large_bytes(page) as i64);
            let moved = shared.pages.relocate(OwnedRun::at(from), OwnedRun::at(to));
            match moved {
                Moved::Yes => self.publish_large(-from_bytes),
                Moved::No => {}
                Moved::TargetLost => self.publish_large(-to_bytes),
            }
            moved
        }
    }

    /// Frees the large block that starts at `page`.
    ///
    /// # Safety
    /// - See the module header; nobody uses the block any more. The heap is or was alive.
    #[cold]
    pub unsafe fn free_large(&self, page: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.free_kept(page) {
                return;
            }
            self.tick(self.now_ms());
            let (pages, n_pages) = (&self.shared().pages, self.shared().span(page).pages.get());
            if pages.free_or_cache(OwnedRun::at(page), (!self.has_gate()).then(|| self.shelf.permanent())) {
                self.note_kept(n_pages);
            } else {
                self.publish_large(-(Pages(n_pages).to_bytes().0 as i64));
            }
        }
    }

    /// The time, for what is done once in a while.
    pub(crate) fn now_ms(&self) -> u32 {
        // SAFETY: only heaps that are alive come to a slow path.
        unsafe { self.shared() }.os().now_ms() as u32
    }

    /// Bytes of the large block that starts at `page`.
    ///
    /// # Safety
    /// - See the module header.
    #[must_use]
    pub unsafe fn large_bytes(&self, page: u32) -> usize {
        // SAFETY: the caller's promise.
        unsafe { Pages(self.shared().span(page).pages.get()).to_bytes().0 }
    }

    /// Makes a large block hold `size` bytes where it is; `false` if it cannot grow there, or would no longer be a large block.
    ///
    /// # Safety
    /// - See the module header.
    pub unsafe fn resize_large(&self, page: u32, size: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let (shared, held) = (self.shared(), self.shared().span(page).pages.get());
            let Some(Pages(n_pages)) = Bytes(size).to_pages() else { return false };
            if n_pages == 0 {
                return false;
            }
            // A block of an explicit heap grows under that heap's gate only, where its limit is looked at.
            let may_grow = || shared.pages.is_listed(&OwnedRun::at(page), self.is_explicit().then_some(&self.large));
            if n_pages > held
                && !(may_grow() && self.may_have(n_pages - held) && shared.pages.extend(&OwnedRun::at(page), n_pages))
            {
                return false;
            }
            if n_pages < held && !shared.pages.is_slack(held, n_pages) {
                shared.pages.shrink(&OwnedRun::at(page), n_pages);
            }
            let change = i64::from(shared.span(page).pages.get()) - i64::from(held);
            self.publish_large(change << PAGE_BYTES_LOG2);
            true
        }
    }
}

const _: () = assert!(crate::size_class::SMALL_MAX < PAGE_BYTES);
