//! The background thread: starting it, its first settings, and joining it.
#![allow(unsafe_code)]
//!
//! ```text
//!  none ── spawn ──▶ busy ── the C library has started it ──▶ running ── join ──▶ busy ── it has ended ──▶ none
//! ```
//!
//! Cost: starting and joining are some system calls each. If the C library cannot start a thread, `spawn` returns `false`, and nothing has changed.
//!
//! # Safety
//! Functions of the C library get structures that they have initialised, or of which every value is valid. The handle passes from the thread that
//! moved the state from none to busy to the one that moves it from running to busy.

use crate::process;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::mem::{self, MaybeUninit};
use core::ptr;
use freestone_base::sync::{AtomicU32, Ordering};

/// The start function of a thread.
pub type Main = extern "C" fn(*mut c_void) -> *mut c_void;

const NONE: u32 = 0;
const BUSY: u32 = 1;
const RUNNING: u32 = 2;

/// A slot for one thread, which can be started again after it was joined. See the module header.
#[derive(Debug)]
pub struct Joinable {
    state: AtomicU32,
    handle: UnsafeCell<MaybeUninit<libc::pthread_t>>,
}

// SAFETY: only the thread that moved the state to busy accesses the handle; the moves release and acquire.
unsafe impl Sync for Joinable {}

impl Joinable {
    /// No thread.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: AtomicU32::new(NONE), handle: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Starts `main` as a thread with every signal blocked and a stack of `stack_bytes`. Keeps `errno`. `false` if the C library cannot, or there is
    /// a thread already.
    pub fn spawn(&self, main: Main, stack_bytes: usize) -> bool {
        if self.state.compare_exchange(NONE, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        let errno = process::errno();
        let before = set_signal_mask(&every_signal());
        // SAFETY: this thread moved the state to busy, so no other accesses the handle.
        let is_started = start(unsafe { &mut *self.handle.get() }, main, stack_bytes);
        set_signal_mask(&before);
        process::set_errno(errno);
        self.state.store(if is_started { RUNNING } else { NONE }, Ordering::Release);
        is_started
    }

    /// Waits until the thread has ended, with cancellation of the calling thread put off. Keeps `errno`. Nothing if there is no thread, or another
    /// thread is joining it.
    pub fn join(&self) {
        if self.state.compare_exchange(RUNNING, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return;
        }
        let errno = process::errno();
        let before = set_cancelability(PTHREAD_CANCEL_DISABLE);
        // SAFETY: this thread moved the state from running to busy, and `spawn` initialised the handle before it stored running.
        let handle = unsafe { self.handle.get().cast::<libc::pthread_t>().read() };
        // SAFETY: the thread was started joinable, and is joined here only, once for each move to running.
        unsafe { libc::pthread_join(handle, ptr::null_mut()) };
        set_cancelability(before);
        process::set_errno(errno);
        self.state.store(NONE, Ordering::Release);
    }

    /// Forgets the thread in a forked child, where it does not exist.
    pub fn forget(&self) {
        self.state.store(NONE, Ordering::Relaxed);
    }
}

impl Default for Joinable {
    fn default() -> Self {
        Self::new()
    }
}

/// Starts a thread and stores its handle in `handle`. `false` if the C library cannot.
fn start(handle: &mut MaybeUninit<libc::pthread_t>, main: Main, stack_bytes: usize) -> bool {
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the call initialises the attributes.
    if unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the attributes were initialised above.
    unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack_bytes) };
    // SAFETY: the attributes were initialised above, `handle` has room for the result, and `main` is a function of the required type.
    let error = unsafe { libc::pthread_create(handle.as_mut_ptr(), attributes.as_ptr(), main, ptr::null_mut()) };
    // SAFETY: the attributes were initialised above, and are not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    error == 0
}

/// The set of all signals.
fn every_signal() -> libc::sigset_t {
    // SAFETY: a `sigset_t` is an array of integers; zeros are an empty set.
    let mut all = unsafe { mem::zeroed() };
    // SAFETY: the call writes to the set, which has room.
    unsafe { libc::sigfillset(&mut all) };
    all
}

/// Sets which signals the calling thread blocks. Returns those that it blocked before.
fn set_signal_mask(signals: &libc::sigset_t) -> libc::sigset_t {
    // SAFETY: a `sigset_t` is an array of integers; zeros are an empty set.
    let mut before = unsafe { mem::zeroed() };
    // SAFETY: the call reads one set and writes to the other, which has room.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, signals, &mut before) };
    before
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// The same in glibc and musl.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// Sets whether the calling thread can be cancelled. Returns how it was before.
fn set_cancelability(state: c_int) -> c_int {
    let mut before = 0;
    // SAFETY: `before` has room for the result; `state` is one of the two that there are, or what this call returned.
    unsafe { pthread_setcancelstate(state, &mut before) };
    before
}

/// Names the calling thread, for debuggers and tools like `top`. A kernel that refuses leaves it without a name.
pub fn set_name(name: &CStr) {
    let _ = rustix::thread::set_name(name);
}

/// Gives the calling thread the ordinary scheduling policy, and the niceness and processors of the process's first thread, whatever it has
/// inherited from the thread that started it. A setting that the kernel refuses stays as it is. Changes `errno`, so only the background
/// thread calls this.
pub fn schedule_like_the_first() {
    let first = process::id();
    // SAFETY: a `sched_param` is a structure of integers; zeros are one without priority.
    let parameter: libc::sched_param = unsafe { mem::zeroed() };
    // A system call, because musl's function does nothing.
    // SAFETY: the call reads one `sched_param`.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_OTHER, &raw const parameter) };
    // SAFETY: getpriority takes numbers and touches no memory but `errno`.
    let niceness = unsafe { libc::getpriority(libc::PRIO_PROCESS, first as libc::id_t) };
    // SAFETY: setpriority takes numbers and touches no memory but `errno`.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) };
    let mut processors = MaybeUninit::<libc::cpu_set_t>::zeroed();
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: the call writes at most `bytes` to `processors`, which has so many.
    if unsafe { libc::sched_getaffinity(first, bytes, processors.as_mut_ptr()) } == 0 {
        // SAFETY: the call reads `bytes` of `processors`, which is zero where the call above has not written.
        unsafe { libc::sched_setaffinity(0, bytes, processors.as_ptr()) };
    }
}

#[cfg(test)]
mod tests;
