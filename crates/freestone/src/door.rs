//! The door for the parts of Freestone outside this crate: the C interface, the lab, fuzz targets and tools.
#![allow(unsafe_code)]
//!
//! Not part of the public interface: anything here may change with any version.
//!
//! | for | there is |
//! |---|---|
//! | the C interface | [`allocate`], [`free`] and their like, inlined into the C functions |
//! | the library of checked memory functions | [`checked_range`], [`check_access`], through the C interface |
//! | fuzz targets | [`Instance`]: an allocator of its own, over a fake operating system |
//! | the lab | [`live`] and [`profile_page`], to read and ask another process; [`is_free_by_trailer`], of blocks in one |
//! | tools | [`Settings`], [`find`] and [`key`], to try values of options without setting them |
//!
//! Layer: above `api`.
//!
//! # Safety
//! The allocating functions trust their caller as C's do. An [`Instance`] must stay where it is while it has heaps.

use crate::check::check;
use crate::shared::Shared;
use crate::thread::heap::own::Own;
use crate::thread::life::Threads;
use freestone_os::Os;

pub use crate::api::access::{CheckedRange, check_access, checked_range};
pub use crate::api::alloc::{
    SMALL_BOUND, allocate, allocate_aligned, allocate_aligned_as, allocate_as, allocate_below, allocate_zeroed,
};
pub use crate::api::free::{
    AtHand, CLASS_BOUND, free, free_aligned_sized, free_at_hand, free_sized, free_slow_as, try_usable_size, usable_size,
};
pub use crate::api::heap_map::{MAGIC as HEAP_MAP_MAGIC, VERSION as HEAP_MAP_VERSION};
pub use crate::api::owner::{Owner, is_of, owner, set_handle};
pub use crate::api::realloc::reallocate;
pub use crate::check::Broken;
pub use crate::config::{Settings, find, key};
pub use crate::misuse::{Access, judge_families};
pub use crate::span::family::Family;
pub use crate::span::trailer::is_free_by_trailer;
pub use crate::thread::watched::request::Claim;

/// The page of statistics that a process keeps with the option `live`.
pub mod live {
    pub use crate::stats::live_page::{CLASS_ROWS, HEAP_ROWS, LiveState, PAGE_WORDS, Unreadable, process_of, read};
    use core::ffi::CStr;
    use core::sync::atomic::AtomicU64;
    use freestone_os::{Errno, SharedWords};

    /// Maps the page at `path`, for as long as this process lives.
    ///
    /// # Errors
    /// The kernel's error; [`Errno::INVAL`] if the file is not as long as a page.
    pub fn open(path: &CStr) -> Result<&'static [AtomicU64; PAGE_WORDS], Errno> {
        SharedWords::open(path)
    }
}

/// The page of a process with the option `heap_profile=ready`.
pub mod profile_page {
    pub use crate::api::profile_page::{MAGIC, PAGE_WORDS, Request};
}

/// An allocator of its own, over any operating system.
pub struct Instance<O: Os + 'static> {
    shared: Shared<O>,
    threads: Threads<O>,
}

impl<O: Os + 'static> Instance<O> {
    /// Default settings. Makes no system call.
    #[must_use]
    pub const fn new(os: O) -> Self {
        Self { shared: Shared::new(os), threads: Threads::new() }
    }

    /// The operating system underneath.
    #[must_use]
    pub fn os(&self) -> &O {
        self.shared.os()
    }

    /// The options.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.shared.settings()
    }

    /// A heap for the calling thread; `None` when memory runs out.
    ///
    /// # Safety
    /// - The instance is not moved from now on.
    #[must_use]
    pub unsafe fn heap(&self) -> Option<InstanceHeap<'_, O>> {
        // SAFETY: the instance stays where it is (this function's contract) and outlives the borrow; all its heaps use its own parts.
        let own = unsafe { self.threads.create(&self.shared) }?;
        Some(InstanceHeap { threads: &self.threads, own })
    }

    /// Checks every invariant.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    ///
    /// # Safety
    /// - No other thread uses the instance or a heap of it meanwhile.
    pub unsafe fn check(&self) -> Result<(), Broken> {
        // SAFETY: no other thread is inside the allocator (this function's contract).
        unsafe { check(&self.shared, &self.threads) }
    }
}

/// A heap of an [`Instance`], for one thread. Dropping it leaves its blocks live, in abandoned spans.
pub struct InstanceHeap<'i, O: Os + 'static> {
    threads: &'i Threads<O>,
    own: Own<'i, O>,
}

impl<O: Os + 'static> InstanceHeap<'_, O> {
    /// Allocates `size` bytes aligned to `align` bytes; null when memory runs out.
    ///
    /// # Safety
    /// - `align` is a power of two.
    #[must_use]
    pub unsafe fn allocate(&self, size: usize, align: usize) -> *mut u8 {
        self.own.allocate(size, align).start
    }

    /// As [`reallocate`], with this heap.
    ///
    /// # Safety
    /// - As for [`reallocate`], of blocks of the instance.
    #[must_use]
    pub unsafe fn reallocate(&self, block: *mut u8, size: usize, align: usize) -> *mut u8 {
        // SAFETY: the block is live (this function's contract).
        unsafe { self.own.reallocate(block, size, align) }
    }

    /// As [`free`], with this heap; the block is not null.
    ///
    /// # Safety
    /// - `block` was returned by a heap of the instance and is not freed; no code uses it any more.
    pub unsafe fn free(&self, block: *mut u8) {
        // SAFETY: the block is live, and given up (this function's contract).
        unsafe { self.own.free(block) }
    }
}

impl<O: Os + 'static> Drop for InstanceHeap<'_, O> {
    fn drop(&mut self) {
        // SAFETY: the heap was created here, and is not used after this drop.
        unsafe { self.threads.end(self.own) }
    }
}
