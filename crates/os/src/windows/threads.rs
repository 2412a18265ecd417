//! Starting and joining a thread.
#![allow(unsafe_code)]
//!
//! ```text
//!  created ── it starts ──▶ running ── its function returns ──▶ returned ── join ──▶ freed
//!     └────── join ──▶ cancelled ── it starts ──▶ freed, by the thread
//! ```
//!
//! A thread takes the loader's lock to start and to end, and who joins it has that lock where another thread's exit is its reason. So nobody waits for a
//! thread to start or to end: one is joined as soon as its function has returned, and never calls it if it had not started.
//!
//! # Safety
//! The record of a thread is freed once: by who joins it when it was running, and otherwise by the thread. The other touches it no more then.

use crate::Errno;
use crate::kernel;
use crate::start_function::Main;
use core::ffi::{CStr, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use freestone_base::sync::{AtomicU32, Ordering};

#[link(name = "kernel32")]
unsafe extern "system" {
    fn CreateThread(
        security: *mut c_void,
        stack_bytes: usize,
        main: unsafe extern "system" fn(*mut c_void) -> u32,
        argument: *mut c_void,
        flags: u32,
        id: *mut u32,
    ) -> *mut c_void;
    fn CloseHandle(handle: *mut c_void) -> i32;
}

/// The stack's size is how much is reserved, not how much is committed.
const STACK_SIZE_PARAM_IS_A_RESERVATION: u32 = 0x1_0000;

/// What a thread and who joins it share.
pub(crate) struct Record {
    main: Main,
    state: AtomicU32,
}

const CREATED: u32 = 0;
const RUNNING: u32 = 1;
const RETURNED: u32 = 2;
const CANCELLED: u32 = 3;

/// Frees a record.
///
/// # Safety
/// - Nobody uses it any more.
unsafe fn free(record: *mut Record) {
    // SAFETY: `start` mapped the record, and nobody uses it any more (this function's contract).
    unsafe { kernel::unmap(record.cast(), size_of::<Record>()) };
}

/// The record of a thread.
pub(crate) type Handle = *mut Record;

/// Starts a thread, and stores its record in `handle`.
///
/// # Errors
/// The system cannot now: it lacks memory.
pub(crate) fn start(handle: &mut MaybeUninit<Handle>, main: Main, stack_bytes: usize) -> Result<(), Errno> {
    let Some(at) = kernel::map(size_of::<Record>()) else { return Err(Errno::AGAIN) };
    let record = at.cast::<Record>();
    // SAFETY: the memory was mapped just now, is long enough, and aligned to an OS page.
    unsafe { record.write(Record { main, state: AtomicU32::new(CREATED) }) };
    let flags = STACK_SIZE_PARAM_IS_A_RESERVATION;
    // SAFETY: `call` is a function of the required type, and its argument is what it expects.
    let started = unsafe { CreateThread(ptr::null_mut(), stack_bytes, call, record.cast(), flags, ptr::null_mut()) };
    if started.is_null() {
        // SAFETY: there is no thread that has it.
        unsafe { free(record) };
        return Err(Errno::AGAIN);
    }
    // SAFETY: the handle was opened above, and is not used any more; the thread goes on.
    unsafe { CloseHandle(started) };
    handle.write(record);
    Ok(())
}

/// The function of a thread: calls the one of its record, unless it was joined meanwhile, and says when that has returned.
///
/// # Safety
/// - The argument is the thread's record.
unsafe extern "system" fn call(at: *mut c_void) -> u32 {
    // SAFETY: the argument is the thread's record (this function's contract), which is freed only when its function has returned, or below.
    let record = unsafe { &*at.cast::<Record>() };
    if record.state.compare_exchange(CREATED, RUNNING, Ordering::Relaxed, Ordering::Acquire).is_err() {
        // SAFETY: who joined the thread has left the record to it.
        unsafe { free(at.cast()) };
        return 0;
    }
    (record.main)(ptr::null_mut());
    let word = ptr::from_ref(&record.state);
    record.state.store(RETURNED, Ordering::Release);
    // The record may be gone: only its address is used.
    kernel::wake_at(word);
    0
}

/// Waits until the function of a thread has returned, or keeps it from being called.
///
/// # Safety
/// - [`start`] stored the handle, and it is joined once.
pub(crate) unsafe fn join(handle: Handle) {
    // SAFETY: the record is freed below, or by the thread after the next statement has cancelled it (this function's contract).
    let record = unsafe { &*handle };
    if record.state.compare_exchange(CREATED, CANCELLED, Ordering::Release, Ordering::Relaxed).is_ok() {
        return;
    }
    while record.state.load(Ordering::Acquire) != RETURNED {
        kernel::wait(&record.state, RUNNING, None);
    }
    // SAFETY: the thread does not touch the record any more.
    unsafe { free(handle) };
}

/// Nothing: thread-local storage is not on stacks.
pub fn count_thread_locals() {}

/// Nothing: names of threads are for debuggers, and take a call that older systems do not have.
pub fn set_name(_name: &CStr) {}

/// Nothing: a thread inherits no priority.
pub fn schedule_like_the_first() {}
