//! Threads whose calls are recorded.
#![allow(unsafe_code)]
//!
//! ```text
//!  this thread's pointer ─▶ front: a placeholder ┐
//!                           real ────────────────┼─▶ the thread's heap, as ever
//!                           recorder             ┘
//! ```
//!
//! The pointer of a recorded thread leads to a placeholder: its bins are empty, so every hot path leaves for the slow one, which finds the thread's record here.
//! During the call, and while the event is encoded, the pointer leads to the real heap. So the call is exactly what it would be without recording; and
//! a signal handler that interrupts it finds a heap to allocate from, and is not recorded: it cannot come between two halves of an event.
//!
//! Records are metadata, never unmapped, and are used again, with their open chunks, when a thread has ended.
//!
//! # Safety
//! A record is its thread's alone from [`Recordings::begin`] to [`Recordings::end`]: taking it is a compare-and-swap. Any thread may read `next`, which does not change
//! once the record is in the list. In a forked child there is one thread.

use crate::config::path_value::PathValue;
use crate::record::recorder::{Destination, Recorder};
use crate::record::trace_file::TraceFile;
use crate::thread::current::{self, Front};
use crate::thread::heap::own::{Current, Own};
use crate::thread::heap::{HeapFront, ThreadHeap};
use core::cell::Cell;
use core::mem::offset_of;
use core::ptr;
use freestone_base::sync::{AtomicBool, AtomicPtr, Ordering};
use freestone_os::System;

/// A recorded thread: what its pointer leads to between two calls.
#[repr(C)]
pub(crate) struct RecordedThread {
    front: Front,
    /// Null in a record that no thread has.
    real: Cell<*const ThreadHeap<System>>,
    recorder: Recorder,
    number: Cell<u32>,
    is_taken: AtomicBool,
    next: *const RecordedThread,
}

const _: () = assert!(offset_of!(RecordedThread, front) == 0, "a pointer to the front is one to the record");

// SAFETY: other threads read `is_taken`, an atomic, and `next`, which does not change; everything else is the thread's that took the record.
unsafe impl Sync for RecordedThread {}

impl RecordedThread {
    /// The thread's heap.
    #[inline]
    pub(crate) fn own(&self) -> Own<'static, System> {
        // SAFETY: the heap was this thread's when its recording began, its record is never unmapped, and the recording ends before the heap does.
        let heap = unsafe { &*self.real.get() };
        // SAFETY: as above: it is alive and this thread's.
        unsafe { heap.as_own(None) }
    }

    /// Lets this thread's pointer lead to the real heap during a call. Returns that heap.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Current<'static, System> {
        let front = self.real.get().cast();
        // SAFETY: the heap is alive and this thread's until its recording ends.
        unsafe { current::set_here(front) };
        // SAFETY: as above, and heaps are never unmapped.
        unsafe { Current::at(front) }
    }

    /// Lets it lead to the front again, if there is still something to record to.
    #[inline(always)]
    pub(crate) fn leave(&self, is_recording: bool) {
        if is_recording {
            // SAFETY: the front is this thread's until its recording ends.
            unsafe { current::set_here(ptr::from_ref(self).cast()) };
        }
    }

    /// Where events go.
    #[inline(always)]
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }
}

/// The record of this thread, if its calls are recorded and it is in none.
#[inline(always)]
#[must_use]
pub(crate) fn recorded() -> Option<&'static RecordedThread> {
    let heap = current::get();
    // Of all placeholders only a front has a number.
    if !heap.is_placeholder() || heap.number() == 0 {
        return None;
    }
    // SAFETY: the pointer leads to a placeholder with a number: to the front, the first field of a record, and was made from a pointer to the record.
    // Records are never unmapped.
    Some(unsafe { &*current::pointer().cast() })
}

/// This thread's heap, recorded or not.
#[inline]
#[must_use]
pub(crate) fn own() -> Option<Own<'static, System>> {
    current::get().own().or_else(|| Some(recorded()?.own()))
}

/// The trace of a process, and its recorded threads.
pub(crate) struct Recordings {
    pub(crate) trace: TraceFile,
    /// All records that there ever were.
    first: AtomicPtr<RecordedThread>,
}

impl Recordings {
    /// Nothing is recorded.
    pub(crate) const fn new() -> Self {
        Self { trace: TraceFile::new(), first: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Records the calls of this thread from now on, if calls are recorded and there is memory for that. Its pointer leads to its heap.
    #[cold]
    pub(crate) fn begin(&self, own: Own<'static, System>, path: &PathValue) {
        if !self.trace.is_on() {
            return;
        }
        let Some(record) = self.take_unused().or_else(|| self.add(own)) else { return };
        record.real.set(own.heap());
        record.front.set_number(own.heap().number());
        record.number.set(self.trace.number_thread());
        record.recorder.thread(Destination { trace: &self.trace, path }, record.number.get(), false);
        record.leave(true);
    }

    /// Ends the recording of this thread, if it is recorded: its pointer leads to its heap.
    pub(crate) fn end(&self, path: &PathValue) {
        if let Some(record) = recorded() {
            record.enter();
            record.recorder.thread(Destination { trace: &self.trace, path }, record.number.get(), true);
            record.real.set(ptr::null());
            record.is_taken.store(false, Ordering::Release);
        }
    }

    /// In a forked child: lets go of the parent's chunks. The thread goes on recording, into a file of the child's own. A callback may fork during a
    /// recorded call, when the thread's pointer leads to its heap: so its record is found by the heap.
    pub(crate) fn forked(&self, path: &PathValue) {
        self.trace.forked();
        let to = Destination { trace: &self.trace, path };
        let own = own();
        for record in self.all() {
            record.recorder.leave(to);
            let is_own = own.is_some_and(|own| ptr::eq(own.heap(), record.real.get()));
            record.is_taken.store(is_own, Ordering::Relaxed);
            if is_own {
                record.number.set(self.trace.number_thread());
                record.recorder.thread_is(record.number.get());
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &'static RecordedThread> {
        let mut at = self.first.load(Ordering::Acquire).cast_const();
        core::iter::from_fn(move || {
            // SAFETY: null, or a record, which is never unmapped.
            let record = unsafe { at.as_ref() }?;
            at = record.next;
            Some(record)
        })
    }

    fn take_unused(&self) -> Option<&'static RecordedThread> {
        let take = |record: &&RecordedThread| {
            let exchanged = record.is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
            exchanged.is_ok()
        };
        self.all().find(take)
    }

    fn add(&self, own: Own<'static, System>) -> Option<&'static RecordedThread> {
        let place = own.shared().pages.metadata(size_of::<RecordedThread>())?.cast::<RecordedThread>();
        let record = RecordedThread {
            front: HeapFront::placeholder(),
            real: Cell::new(ptr::null()),
            recorder: Recorder::new(),
            number: Cell::new(0),
            is_taken: AtomicBool::new(true),
            next: ptr::null(),
        };
        // SAFETY: the storage is aligned to a page, as long as a record, and was handed out just now.
        unsafe { place.write(record) };
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            // SAFETY: no other thread has the address yet.
            unsafe { (*place).next = first };
            match self.first.compare_exchange(first, place, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
        // SAFETY: the record was written above, and is never unmapped.
        let record = unsafe { &*place };
        record.recorder.begin(&self.trace);
        Some(record)
    }
}
