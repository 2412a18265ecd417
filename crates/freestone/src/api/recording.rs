//! Calls that are recorded: the call itself, and its event.
//!
//! The slow paths come here first ([`recorded`]), and pass what is to be done. That takes the same way as in a thread that is not recorded, with
//! the thread's real heap (`thread::recorded`).
//!
//! Not recorded are allocations from explicit heaps and the ends of these, what a thread does after its heap has ended, what a signal handler or the
//! callback for memory pressure does while its thread is in the allocator, and questions for a block's size.

use crate::api::local_heap::with_heap;
use crate::api::process::PROCESS;
use crate::record::recorder::{Asked, Destination, Resized};
use crate::span::family::Family;
use crate::thread::recorded::RecordedThread;
use crate::thread::{current, recorded as threads};
use freestone_trace::Kind;

/// The record of this thread, if its calls are recorded. The first call of a thread begins that.
#[inline(always)]
pub(super) fn recorded() -> Option<&'static RecordedThread> {
    if current::get().is_placeholder() { threads::recorded().or_else(begun) } else { None }
}

/// Makes this thread's heap, if it has made no call yet, which begins its recording.
#[cold]
#[inline(never)]
fn begun() -> Option<&'static RecordedThread> {
    if !current::is_new() {
        return None;
    }
    with_heap(|_| ());
    threads::recorded()
}

fn destination() -> Destination<'static> {
    Destination { trace: &PROCESS.recordings.trace, path: PROCESS.shared.settings().record_path() }
}

/// How a function of `family` allocates.
#[inline]
pub(super) fn kind(family: Family, is_zeroed: bool) -> Kind {
    match (family, is_zeroed) {
        (Family::C, false) => Kind::C,
        (Family::C, true) => Kind::CZeroed,
        (Family::Rust, false) => Kind::Rust,
        (Family::Rust, true) => Kind::RustZeroed,
        (Family::New, _) => Kind::New,
        (Family::NewArray, _) => Kind::NewArray,
    }
}

/// Allocates with `call`, and records that.
pub(super) fn allocate(record: &RecordedThread, kind: Kind, asked: Asked, call: impl FnOnce() -> *mut u8) -> *mut u8 {
    record.enter();
    let block = call();
    record.leave(record.recorder().allocated(destination(), kind, asked, block));
    block
}

/// Takes a block of `class`, for less than 2^15 bytes, out of the bin of a recorded thread, and records that. Null, and nothing is recorded, if the bin is empty:
/// then the call has to go on to [`allocate`].
#[inline(always)]
pub(super) fn pop(record: &RecordedThread, kind: Kind, size: usize, class: usize) -> *mut u8 {
    let block = record.enter().pop(class);
    if block.is_null() {
        return block;
    }
    if !record.recorder().allocated_in_a_word(&PROCESS.recordings.trace, kind, size, block) {
        return popped(record, kind, size, block);
    }
    record.leave(true);
    block
}

/// Records what [`pop`] took, where it takes more than a word.
#[cold]
#[inline(never)]
fn popped(record: &RecordedThread, kind: Kind, size: usize, block: *mut u8) -> *mut u8 {
    record.leave(record.recorder().allocated(destination(), kind, Asked { size, align: 1 }, block));
    block
}

/// Whether it was recorded, in a word, that a small block of this thread is freed, which has to be done next. During the call of a recorded thread.
#[inline(always)]
pub(super) fn frees_in_a_word(record: &RecordedThread, block: *mut u8) -> bool {
    record.recorder().freed_in_a_word(&PROCESS.recordings.trace, block)
}

/// Frees `block` with `call`, and records that before another thread can be given the block.
pub(super) fn free(record: &RecordedThread, block: *mut u8, call: impl FnOnce()) {
    record.enter();
    let is_recording = record.recorder().freed(destination(), ticket(block), block);
    call();
    record.leave(is_recording);
}

/// Resizes `block` with `call`, and records that.
pub(super) fn reallocate(
    record: &RecordedThread,
    block: *mut u8,
    asked: Asked,
    call: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    record.enter();
    let from = Resized { block, ticket: ticket(block) };
    let moved = call();
    record.leave(record.recorder().resized(destination(), from, asked, moved));
    moved
}

/// The sequence number of a call that frees or resizes `block`: only if it is a block of another thread's heap, or a large one, as only these get
/// from one thread to another.
fn ticket(block: *mut u8) -> Option<u64> {
    match current::get().own_class(block.addr()) {
        Some(_) => None,
        None => Some(PROCESS.recordings.trace.take_sequence()),
    }
}
