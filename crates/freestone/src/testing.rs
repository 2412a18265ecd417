//! Heaps over the fake kernel, for the tests of this crate.
#![allow(unsafe_code)]
//!
//! # Safety
//! A [`World`] outlives its heaps, and each test uses them from one thread at a time unless it says so.

#[cfg(shuttle)]
mod schedules;

use crate::check::check;
use crate::config::Harden;
use crate::shared::Shared;
use crate::span::{OwnedSpan, PageIndex};
use crate::thread::explicit::ExplicitHeap;
use crate::thread::free_block::FreeBlock;
use crate::thread::heap::own::Own;
use crate::thread::life::Threads;
use crate::thread::watched::request::Claim;
use freestone_base::units::PAGE_BYTES_LOG2;
use freestone_os::fake::Fake;
use freestone_testkit::ops::Subject;
use std::boxed::Box;
use std::format;
use std::ptr::NonNull;
use std::string::String;

/// Bytes of a world's address range: more than one unit of pages, and smaller where tests are slow.
pub(crate) const RANGE_BYTES: usize = if cfg!(any(fuzzing, shuttle)) { 80 << 20 } else { 256 << 20 };

/// What heaps share, over a fake kernel, and the heaps.
pub(crate) struct World {
    pub(crate) shared: Box<Shared<Fake>>,
    pub(crate) threads: Threads<Fake>,
}

impl World {
    pub(crate) fn new(os_page_bytes: usize) -> Self {
        let shared = Box::new(Shared::new(Fake::new(os_page_bytes, RANGE_BYTES)));
        Self { shared, threads: Threads::new() }
    }

    /// A world whose heaps are hardened as the text `level` says.
    pub(crate) fn hardened(os_page_bytes: usize, level: &str) -> Self {
        let world = Self::new(os_page_bytes);
        world.set(crate::config::key::HARDEN, level);
        world
    }

    /// The same world, which goes on after a misuse; none was seen yet.
    pub(crate) fn ignoring_misuse(self) -> Self {
        self.set(crate::config::key::MISUSE, "ignore");
        let _ = crate::misuse::seen::take();
        self
    }

    pub(crate) fn os(&self) -> &Fake {
        self.shared.os()
    }

    pub(crate) fn heap(&self) -> Own<'_, Fake> {
        self.try_heap().expect("the fake kernel has memory")
    }

    pub(crate) fn try_heap(&self) -> Option<Own<'_, Fake>> {
        // SAFETY: what the heaps share is boxed and outlives the borrow; a test uses a heap from one thread, and not after its end.
        unsafe { self.threads.create(&self.shared) }
    }

    pub(crate) fn explicit_heap(&self) -> &ExplicitHeap<Fake> {
        self.try_explicit_heap().expect("the fake kernel has memory")
    }

    pub(crate) fn try_explicit_heap(&self) -> Option<&ExplicitHeap<Fake>> {
        // SAFETY: what the heaps share is boxed and outlives the borrow.
        unsafe { self.threads.create_explicit(&self.shared, Harden::Off) }
    }

    /// Ends a heap of this world, which the test does not use again.
    pub(crate) fn end(&self, heap: Own<'_, Fake>) {
        // SAFETY: the heap was created in this world, and the test does not use it again.
        unsafe { self.threads.end(heap) };
    }

    /// Leaves a heap of this world, which the test does not use again, to the next thread.
    pub(crate) fn leave(&self, heap: Own<'_, Fake>) {
        // SAFETY: the heap was created in this world, and the test does not use it again.
        unsafe { self.threads.leave(heap) };
    }

    /// The heap that a new thread of this world gets: a spare one, if there is one.
    pub(crate) fn next_heap(&self) -> Own<'_, Fake> {
        // SAFETY: what the heaps share is boxed and outlives the borrow; a test uses a heap from one thread, and not after its end.
        unsafe { self.threads.take_spare() }.unwrap_or_else(|| self.heap())
    }

    /// Destroys an explicit heap of this world: the test uses neither it nor a block of it again.
    pub(crate) fn destroy(&self, heap: &ExplicitHeap<Fake>) {
        // SAFETY: the heap was created in this world; the test uses neither it nor a block of it again.
        unsafe { self.threads.destroy(heap) };
    }

    /// Goes on as a forked child whose one thread has the heap `own`: the test does not use the other heaps again.
    pub(crate) fn orphan_others(&self, own: Own<'_, Fake>) {
        // SAFETY: the test is one thread, which holds no lock and goes on with `own` only.
        unsafe { self.threads.orphan_others(Some(own)) };
    }

    /// Pages of small spans that are in use.
    pub(crate) fn small_span_pages(&self) -> u64 {
        self.shared.pages.stats().small_pages
    }

    /// Clean pages that came into use since the start.
    pub(crate) fn fresh_pages(&self) -> u64 {
        self.shared.pages.stats().fresh_bytes >> PAGE_BYTES_LOG2
    }

    /// Spends the budget of early purges: up to the dirty bound, what is freed stays dirty for the decay time.
    pub(crate) fn spend_early_purges(&self) {
        self.shared.pages.spend_early_purges();
    }

    /// Grants huge pages of this size on request, to large blocks of any length: as if others had been densely written.
    pub(crate) fn give_huge_pages(&self, bytes: usize) {
        self.os().give_huge_pages(bytes);
        self.shared.pages.take_blocks_for_dense();
    }

    /// How many bytes go back to the operating system while `act` runs.
    pub(crate) fn purged_by(&self, act: impl FnOnce()) -> usize {
        let before = self.os().purged_bytes();
        act();
        (self.os().purged_bytes() - before) as usize
    }

    /// Sets the option `index`, one of `config::key`.
    pub(crate) fn set(&self, index: usize, value: &str) {
        self.shared.settings().set(index, value.as_bytes()).expect("the option takes the value");
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        // SAFETY: tests call this while no other thread uses a heap.
        unsafe { check(&self.shared, &self.threads) }.map_err(|broken| format!("{broken:?}"))
    }
}

/// The levels of hardening that make a heap take different ways.
pub(crate) const LEVELS: [&str; 3] = ["default", "checks", "full"];

/// Frees a block of a world's heap with `heap`.
///
/// This and the functions below are safe so that a test reads as what it does. A test passes blocks that it allocated, uses none after freeing it,
/// and frees one twice only to see what the heap says of that.
pub(crate) fn free(heap: Own<'_, Fake>, block: *mut u8) {
    // SAFETY: the block is the test's, which does not use it again (see above).
    unsafe { heap.free(block) };
}

/// Frees a block of a world's heap, of which the program says something (see [`free`]).
pub(crate) fn free_as(heap: Own<'_, Fake>, block: *mut u8, claim: Claim) {
    // SAFETY: the block is the test's, which does not use it again (see `free`).
    unsafe { heap.free_as(block, claim) };
}

/// Makes a block of a world's heap hold `bytes` (see [`free`]).
pub(crate) fn reallocate(heap: Own<'_, Fake>, block: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: the block is the test's, which uses the returned value in its place (see `free`).
    unsafe { heap.reallocate(block, bytes, 1) }
}

/// Makes a large block of a world's heap hold `bytes` where it is; whether it can (see [`free`]).
pub(crate) fn resize_in_place(heap: Own<'_, Fake>, block: *mut u8, bytes: usize) -> bool {
    // SAFETY: the block is the test's, which does not use what was cut off (see `free`).
    unsafe { heap.resize_in_place(block, bytes) }
}

/// A block that the test frees by its class (see [`free`]).
pub(crate) fn freed(block: *mut u8, class: usize) -> FreeBlock {
    // SAFETY: the block is the test's, of this class, and not used again (see `free`).
    unsafe { FreeBlock::new(block, class) }
}

/// Writes `byte` to the first `bytes` of a block (see [`free`]).
pub(crate) fn fill(block: *mut u8, byte: u8, bytes: usize) {
    assert!(!block.is_null());
    // SAFETY: the block is the test's, and at least as long (see `free`).
    unsafe { block.write_bytes(byte, bytes) };
}

/// Whether the first `bytes` of a block are all `byte` (see [`free`]).
pub(crate) fn is_filled(block: *const u8, byte: u8, bytes: usize) -> bool {
    // SAFETY: the block is the test's, written before, and at least as long (see `free`).
    let found = unsafe { core::slice::from_raw_parts(block, bytes) };
    // By pieces: one at a time takes Miri long.
    found.chunks(1 << 14).all(|piece| *piece == [byte; 1 << 14][..piece.len()])
}

/// Whether the kernel can read the byte at an address: it takes it for the first one of a path.
#[cfg(target_os = "linux")]
pub(crate) fn kernel_can_read(at: *const u8) -> bool {
    // SAFETY: the call reads a path, and refuses an address that it cannot read.
    let is_there = unsafe { libc::access(at.cast(), libc::F_OK) } == 0;
    is_there || freestone_os::process::errno() != freestone_os::Errno(libc::EFAULT)
}

/// The span or run that starts at `page` in a world that no other thread uses meanwhile.
pub(crate) fn span_at(world: &World, page: PageIndex) -> OwnedSpan<'_> {
    // SAFETY: the test took the page from a heap of the world, so it is below the high-water mark; no other thread uses the world.
    unsafe { OwnedSpan::at(world.shared.pages.layout(), page) }
}

/// The small span that a block lies in (see [`span_at`]).
pub(crate) fn span_of(world: &World, block: *const u8) -> OwnedSpan<'_> {
    let page = world.shared.pages.view().page_of(block.addr()).expect("the block is of this world");
    span_at(world, span_at(world, page).first_page())
}

/// A value in memory that is mapped for good and reads as zero, which is a value of the type.
pub(crate) fn zeroed<T>(start: *mut u8) -> &'static T {
    // SAFETY: the test has mapped as many zero bytes, and a type of atomics may have them.
    unsafe { &*start.cast::<T>() }
}

/// Bytes that are read of a block that is said to be zero, at most.
const READ_MOST: usize = 40_000;

/// One heap of a world, as a subject of operation streams.
pub(crate) struct OneHeap<'world> {
    pub(crate) world: &'world World,
    pub(crate) heap: Own<'world, Fake>,
}

impl Subject for OneHeap<'_> {
    type Error = ();

    fn allocate(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, ()> {
        let block = self.heap.allocate(bytes, align);
        assert!(
            !block.zero || is_filled(block.start, 0, bytes.min(READ_MOST)),
            "a block that is said to be zero is not"
        );
        NonNull::new(block.start).ok_or(())
    }

    unsafe fn reallocate(
        &mut self,
        block: NonNull<u8>,
        _old_bytes: usize,
        align: usize,
        bytes: usize,
    ) -> Result<NonNull<u8>, ()> {
        // SAFETY: the block is in use, and the heap is this test's.
        NonNull::new(unsafe { self.heap.reallocate(block.as_ptr(), bytes, align) }).ok_or(())
    }

    unsafe fn deallocate(&mut self, block: NonNull<u8>, _bytes: usize, _align: usize) -> Result<(), ()> {
        // SAFETY: the block is in use and given up (the trait's contract), and the heap is this test's.
        unsafe { self.heap.free(block.as_ptr()) };
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.world.check()
    }
}

#[cfg(test)]
mod faults;
