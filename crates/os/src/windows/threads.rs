//! Starting and joining a thread.
#![allow(unsafe_code)]
//!
//! A thread is joined as soon as its function has returned, not when it has ended: it takes the loader's lock to end, which who joins it holds where
//! another thread's exit is its reason.
//!
//! # Safety
//! The record of a thread is freed by who joins it, once its function has returned; the thread touches it no more then.

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
    /// 1 when its function has returned.
    has_returned: AtomicU32,
}

/// The record of a thread.
pub(crate) type Handle = *mut Record;

/// Starts a thread, and stores its record in `handle`. `false` if the system cannot.
pub(crate) fn start(handle: &mut MaybeUninit<Handle>, main: Main, stack_bytes: usize) -> bool {
    let Some(at) = kernel::map(size_of::<Record>()) else { return false };
    let record = at.cast::<Record>();
    // SAFETY: the memory was mapped just now, is long enough, and aligned to an OS page.
    unsafe { record.write(Record { main, has_returned: AtomicU32::new(0) }) };
    let flags = STACK_SIZE_PARAM_IS_A_RESERVATION;
    // SAFETY: `call` is a function of the required type, and its argument is what it expects.
    let started = unsafe { CreateThread(ptr::null_mut(), stack_bytes, call, record.cast(), flags, ptr::null_mut()) };
    if started.is_null() {
        // SAFETY: the memory was mapped above, and no thread has it.
        unsafe { kernel::unmap(at, size_of::<Record>()) };
        return false;
    }
    // SAFETY: the handle was opened above, and is not used any more; the thread goes on.
    unsafe { CloseHandle(started) };
    handle.write(record);
    true
}

/// The function of a thread: calls the one of its record, and says when that has returned.
///
/// # Safety
/// - The argument is the thread's record.
unsafe extern "system" fn call(record: *mut c_void) -> u32 {
    // SAFETY: the argument is the thread's record (this function's contract), which is freed only when its function has returned.
    let record = unsafe { &*record.cast::<Record>() };
    (record.main)(ptr::null_mut());
    let word = ptr::from_ref(&record.has_returned);
    record.has_returned.store(1, Ordering::Release);
    // The record may be gone: only its address is used.
    kernel::wake_at(word);
    0
}

/// Waits until the function of a thread has returned, and frees the thread's record.
///
/// # Safety
/// - [`start`] stored the handle, and it is joined once.
pub(crate) unsafe fn join(handle: Handle) {
    // SAFETY: the record is freed below, by this call (this function's contract).
    let record = unsafe { &*handle };
    while record.has_returned.load(Ordering::Acquire) == 0 {
        kernel::wait(&record.has_returned, 0, None);
    }
    // SAFETY: `start` mapped the record, and the thread does not touch it any more.
    unsafe { kernel::unmap(handle.cast(), size_of::<Record>()) };
}

/// Nothing: names of threads are for debuggers, and take a call that older systems do not have.
pub fn set_name(_name: &CStr) {}

/// Nothing: a thread inherits no priority.
pub fn schedule_like_the_first() {}
