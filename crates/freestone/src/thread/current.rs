//! Which heap is this thread's.
#![allow(unsafe_code)]
//!
//! One thread-local pointer, never null: it starts at the address of a placeholder, so that no path tests whether it is set. Beside it is, for slow
//! paths, the stage of a thread without a heap ([`variables`] declares both).
//!
//! ```text
//!  before first use ─▶ starting ─▶ a thread heap ── the thread exits ─▶ gone
//! ```
//!
//! The placeholder is the same in each of the three stages without a heap: it is as large as a heap's front, and part of the library's file.
//!
//! A thread is *starting* while the allocator starts in it, or while it gets its heap. It may hold locks then, so a signal handler that
//! allocates meanwhile gets null rather than wait for the thread that it interrupted.
//!
//! # Safety
//! The symbol is defined here and has the crate's version in its name, so that two versions can be in one process. The pointer is
//! only ever the placeholder, the front of the calling thread's record (`thread::recorded`), or the calling thread's heap, from its
//! creation to its end; none of them is ever unmapped.

use crate::thread::heap::own::Current;
use core::ptr;
use freestone_os::System;
use variables as slot;
use variables::PLACEHOLDER;

pub(crate) use variables::Front;

mod variables;

/// The stage of a thread whose pointer leads to the placeholder. A thread-local variable starts as zero: before first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Stage {
    BeforeFirstUse = 0,
    /// The thread gets its heap, or starts the allocator.
    Starting = 1,
    /// The thread's heap is gone.
    Gone = 2,
}

/// What a thread had before it was [marked as starting](begin_start).
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Before {
    front: *const Front,
    stage: u32,
}

const _: () = assert!(env!("CARGO_PKG_VERSION").len() == 5, "rename the symbol of this file with the version");

/// This thread's heap, or a placeholder.
#[inline(always)]
#[must_use]
pub(crate) fn get() -> Current<'static, System> {
    // SAFETY: the pointer is a placeholder, or this thread's heap, which is alive; neither is ever unmapped (module header).
    unsafe { Current::at(slot::get()) }
}

/// The pointer itself: [`get`] with what lies behind the front.
#[inline(always)]
#[must_use]
pub(crate) fn pointer() -> *const Front {
    slot::get()
}

/// Whether this thread has no heap, and is in this stage.
fn is_in(stage: Stage) -> bool {
    slot::stage() == stage as u32 && ptr::eq(slot::get(), &raw const PLACEHOLDER)
}

/// Whether this thread has made no call yet.
#[must_use]
pub(crate) fn is_new() -> bool {
    is_in(Stage::BeforeFirstUse)
}

/// Whether this thread had a heap and has none any more.
#[must_use]
pub(crate) fn is_gone() -> bool {
    is_in(Stage::Gone)
}

/// Whether this thread is about to get its heap.
#[must_use]
pub(crate) fn is_starting() -> bool {
    is_in(Stage::Starting)
}

impl Before {
    /// Whether the thread had a heap: a signal handler may have got it one since it was found to have none.
    pub(crate) fn has_heap(self) -> bool {
        !ptr::eq(self.front, &raw const PLACEHOLDER)
    }
}

/// Marks this thread as starting. Returns what to pass to [`return_to`] afterwards if the thread gets no heap.
pub(crate) fn begin_start() -> Before {
    let stage = slot::stage();
    // The stage first: from then on no signal handler gets this thread a heap, which would be lost.
    slot::set_stage(Stage::Starting as u32);
    let front = slot::get();
    slot::set(&raw const PLACEHOLDER);
    Before { front, stage }
}

/// Ends the start of this thread without a heap: it is again in the stage that [`begin_start`] found.
pub(crate) fn return_to(before: Before) {
    // The stage first: a signal handler that runs in between finds the placeholder, or a heap, for which no stage counts.
    slot::set_stage(before.stage);
    slot::set(before.front);
}

/// Makes the heap with this front the thread's.
///
/// # Safety
/// - `front` was made from a pointer to a heap that was created for this thread and is alive, until the next call or [`leave`]; or from one to this thread's
///   record, whose front it is.
pub(crate) unsafe fn set(front: *const Front) {
    slot::set(front);
}

/// As [`set`], for each recorded call: without a call.
///
/// # Safety
/// - As for [`set`].
#[inline(always)]
pub(crate) unsafe fn set_here(front: *const Front) {
    slot::set_here(front);
}

/// Leaves this thread without a heap, for good.
pub(crate) fn leave() {
    // The stage first: while the pointer leads to a heap, no stage counts.
    slot::set_stage(Stage::Gone as u32);
    slot::set(&raw const PLACEHOLDER);
}
