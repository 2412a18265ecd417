//! [`Freestone`]: Rust's global allocator, and the functions that it offers to a Rust program.
#![allow(unsafe_code)]
//!
//! With a layout known at compile time the class is a constant: `Box::new` of a 48-byte type is a pop, its drop a push, both inlined
//! (`hotpath.golden` lists the instructions). The drop does not look up the block's owner: flushing the bin does.
//!
//! # Safety
//! [`GlobalAlloc`]'s contract: the layouts passed in are those the blocks were allocated with.

use crate::api::pressure::Callback;
use crate::api::process::{self, PROCESS};
use crate::api::{alloc, free, local_heap, realloc, recording};
use crate::config::Mistake;
use crate::record::recorder::Asked;
use crate::size_class::{GRANULE_BYTES, class_of_aligned};
use crate::span::family::Family;
use crate::stats::{Details, Stats};
use crate::thread::current;
use crate::thread::life::succession::Which;
use crate::thread::watched::request::Claim;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

/// The process's allocator, for `#[global_allocator]`.
///
/// There is one allocator in a process, whichever value of this type it is reached by. It starts with the first allocation, reads its options
/// then (see [`options`](crate::options)), and is never torn down. All methods may be called from any thread.
///
/// ```
/// use freestone::Freestone;
///
/// #[global_allocator]
/// static ALLOCATOR: Freestone = Freestone;
///
/// fn main() {
///     let numbers = vec![1, 2, 3];
///     assert_eq!(numbers.len(), 3);
///     assert!(ALLOCATOR.stats().live > 0);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Freestone;

impl Freestone {
    /// Gives free memory back to the operating system now: what this thread has cached, all free page runs, each OS page that lies between blocks of this thread, or
    /// of threads that have ended, and the memory of blocks that wait for the threads that allocated them. What other threads have cached, and what is free
    /// between their blocks, stays. What lies between blocks of this thread goes back at most once in `decay_ms`, unless 1 MiB more has become free. Returns the
    /// bytes given back.
    ///
    /// Free memory goes back by itself when it has not been used for a while; call this where the program can tell earlier, such as before it
    /// waits for a long time.
    ///
    /// ```
    /// use freestone::Freestone;
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: Freestone = Freestone;
    ///
    /// drop(vec![1_u8; 8 << 20]);
    /// // A part may have gone back when it was freed.
    /// ALLOCATOR.purge();
    /// assert!(ALLOCATOR.stats().purged >= 8 << 20);
    /// ```
    pub fn purge(&self) -> usize {
        local_heap::purge(Which::All)
    }

    /// What the allocator holds now.
    ///
    /// Reads the counters of running threads without stopping them: blocks that are allocated or freed meanwhile may or may not be counted.
    ///
    /// ```
    /// use freestone::Freestone;
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: Freestone = Freestone;
    ///
    /// let buffer = vec![1_u8; 1 << 20];
    /// let stats = ALLOCATOR.stats();
    /// assert!(stats.live >= buffer.len() as u64);
    /// assert!(stats.committed >= stats.live);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        process::stats()
    }

    /// Calls `visit` with what the allocator holds now, in sum, per size class and per heap; `None` if the kernel has no memory for the rows.
    ///
    /// Allocates nothing and holds no lock while `visit` runs, so that it may do both: it writes the figures as text for a monitoring system, for
    /// example ([`Details::open_metrics`], [`Details::json`]).
    ///
    /// ```
    /// use freestone::Freestone;
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: Freestone = Freestone;
    ///
    /// ALLOCATOR.with_details(|details| print!("{}", details.open_metrics())).expect("memory for the rows");
    /// ```
    pub fn with_details<R>(&self, visit: impl FnOnce(&Details<'_>) -> R) -> Option<R> {
        process::with_details(visit)
    }

    /// Sets the option `name` to `value` from now on. [`options`](crate::options) lists names, units and ranges.
    ///
    /// # Errors
    /// There is no such option, the value is not valid for it, it is only read at the start, it is `harden` after the first allocation, or it
    /// is a limit below what is in use. Nothing has changed then.
    ///
    /// ```
    /// use freestone::{Freestone, options::Mistake};
    ///
    /// assert_eq!(Freestone.set_option("decay_ms", "250"), Ok(()));
    /// assert_eq!(Freestone.set_option("decay_ms", "soon"), Err(Mistake::NotANumber));
    /// assert_eq!(Freestone.option("decay_ms"), Some(250));
    /// ```
    pub fn set_option(&self, name: &str, value: &str) -> Result<(), Mistake> {
        process::set_option(name, value)
    }

    /// The value of the option `name` as a number: in the option's unit, or the place of its word among the words it takes, from 0. A limit
    /// that is not set is the largest number; a path is 0. `None` if there is no such option.
    ///
    /// ```
    /// use freestone::Freestone;
    ///
    /// Freestone.set_option("background", "off")?;
    /// assert_eq!(Freestone.option("background"), Some(2)); // of auto, on, off
    /// assert_eq!(Freestone.option("colour"), None);
    /// # Ok::<(), freestone::options::Mistake>(())
    /// ```
    #[must_use]
    pub fn option(&self, name: &str) -> Option<usize> {
        process::option(name)
    }

    /// Registers `callback`, to be called with the bytes in use and `argument` when the soft limit is passed or an allocation is about to fail.
    /// It replaces the previous one; `None` removes it. It runs in the thread that allocates, which may hold locks of the program. It may
    /// allocate and free; its own allocations do not call it again.
    ///
    /// # Safety
    /// - The function may be called with the argument at any time, by any thread, until another one is set and calls under way have
    ///   returned.
    ///
    /// ```
    /// use core::ffi::c_void;
    /// use core::ptr;
    /// use core::sync::atomic::{AtomicUsize, Ordering};
    /// use freestone::Freestone;
    ///
    /// static CALLS: AtomicUsize = AtomicUsize::new(0);
    ///
    /// unsafe extern "C" fn drop_caches(_in_use_bytes: usize, _argument: *mut c_void) {
    ///     CALLS.fetch_add(1, Ordering::Relaxed);
    /// }
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: Freestone = Freestone;
    ///
    /// // SAFETY: the function ignores its argument, and may be called by any thread.
    /// unsafe { ALLOCATOR.on_pressure(Some(drop_caches), ptr::null_mut()) };
    /// ALLOCATOR.set_option("limit", "32m")?;
    /// drop(vec![1_u8; 64 << 20]);
    /// assert!(CALLS.load(Ordering::Relaxed) > 0);
    /// # Ok::<(), freestone::options::Mistake>(())
    /// ```
    pub unsafe fn on_pressure(&self, callback: Option<Callback>, argument: *mut c_void) {
        // SAFETY: the function may be called with the argument by any thread (this function's contract).
        unsafe { PROCESS.pressure.listen(callback, argument) }
    }

    /// Appends the last line of the report, with what was allocated and what is still held, if the option `report` names a file. The C library
    /// `libfreestone` does this when the process exits; a program that has the crate as its allocator calls it at the end of `main`.
    ///
    /// ```
    /// freestone::Freestone.report_exit();
    /// ```
    pub fn report_exit(&self) {
        process::report_exit();
    }
}

// SAFETY: blocks are at least as large and as aligned as their layout says, and belong to the caller until freed.
unsafe impl GlobalAlloc for Freestone {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= GRANULE_BYTES {
            alloc::allocate_as(layout.size(), Family::Rust)
        } else {
            // SAFETY: the alignment of a layout is a power of two.
            unsafe { alloc::allocate_aligned_as(layout.size(), layout.align(), Family::Rust) }
        }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match class_of_aligned(layout.size(), layout.align()) {
            // SAFETY: `block` was allocated for `layout`, hence of this class, and no code uses it any more (the trait's contract).
            Some(class) => unsafe { free::free_layout(block, class, layout) },
            // SAFETY: `block` was allocated here, and no code uses it any more (the trait's contract).
            None => unsafe { free::free_slow_as(block, Claim::layout(layout.size(), layout.align())) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the alignment of a layout is a power of two.
        unsafe { alloc::allocate_zeroed_as(layout.size(), layout.align(), Family::Rust) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if let (Some(old), Some(new)) =
            (class_of_aligned(layout.size(), layout.align()), class_of_aligned(new_size, layout.align()))
        {
            // A watched heap knows the size that was asked for, and has to hear of another.
            if old == new {
                if current::get().is_plain() {
                    return block;
                }
                if let Some(record) = recording::recorded().filter(|record| record.own().watch().is_none()) {
                    // It stays where it is.
                    return recording::reallocate(
                        record,
                        block,
                        Asked { size: new_size, align: layout.align() },
                        || block,
                    );
                }
            }
            // SAFETY: the alignment of a layout is a power of two.
            let moved = unsafe { alloc::allocate_aligned_as(new_size, layout.align(), Family::Rust) };
            if !moved.is_null() {
                // SAFETY: each block holds the smaller of the two sizes, and they are two.
                unsafe { moved.copy_from_nonoverlapping(block, layout.size().min(new_size)) };
                // SAFETY: the old block was allocated for `layout`, hence of class `old`, and is not used again (the trait's contract).
                unsafe { free::free_layout(block, old, layout) };
            }
            return moved;
        }
        // SAFETY: `block` was allocated for `layout` and is not freed (the trait's contract).
        unsafe { realloc_large(block, layout, new_size) }
    }
}

/// Reallocates when the old or the new block is large. A block that `dealloc` will take for a large one has to be one, and the other way round:
/// unlike C's, a Rust block is freed by its layout.
///
/// # Safety
/// - As for [`GlobalAlloc::realloc`].
#[cold]
unsafe fn realloc_large(block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    if class_of_aligned(layout.size(), layout.align()).is_none() && class_of_aligned(new_size, layout.align()).is_none()
    {
        // SAFETY: `block` is live and its layout's alignment a power of two (this function's contract). Large stays large.
        return unsafe { realloc::reallocate(block, new_size, layout.align()) };
    }
    // SAFETY: the alignment of a layout is a power of two.
    let moved = unsafe { alloc::allocate_aligned_as(new_size, layout.align(), Family::Rust) };
    if !moved.is_null() {
        // SAFETY: each block holds the smaller of the two sizes, and they are two.
        unsafe { moved.copy_from_nonoverlapping(block, layout.size().min(new_size)) };
        // SAFETY: the old block was allocated here, and is not used again (this function's contract).
        unsafe { free::free_slow_as(block, Claim::layout(layout.size(), layout.align())) };
    }
    moved
}
