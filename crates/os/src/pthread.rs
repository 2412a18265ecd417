//! Threads of the C library: starting and joining one, and what is called when one ends.
#![allow(unsafe_code)]
//!
//! # Safety
//! Functions of the C library get structures that they have initialised, or of which every value is valid. Its loader passes descriptions of objects that stay
//! while it calls back.

use crate::Errno;
use crate::start_function::Main;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use freestone_base::sync::{AtomicUsize, Ordering};

/// How the C library calls a thread.
pub(crate) type Handle = libc::pthread_t;

/// Starts a thread with every signal blocked, and stores its handle in `handle`.
///
/// # Errors
/// The C library's reason why it cannot.
pub(crate) fn start(handle: &mut MaybeUninit<Handle>, main: Main, stack_bytes: usize) -> Result<(), Errno> {
    let before = signal_mask::block_all();
    let error = start_as_this(handle, main, stack_bytes);
    signal_mask::set_back(before);
    if error == 0 { Ok(()) } else { Err(Errno(error)) }
}

/// Waits until a thread has ended, with cancellation of the calling thread put off.
///
/// # Safety
/// - [`start`] stored the handle, and it is joined once.
pub(crate) unsafe fn join(handle: Handle) {
    let before = cancel::put_off();
    // SAFETY: the thread was started joinable, and is joined once (this function's contract).
    unsafe { libc::pthread_join(handle, ptr::null_mut()) };
    cancel::allow_as(before);
}

/// Starts a thread that blocks the signals that this one blocks. Returns 0 or an error number.
fn start_as_this(handle: &mut MaybeUninit<Handle>, main: Main, stack_bytes: usize) -> c_int {
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the call initialises the attributes.
    let error = unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
    if error != 0 {
        return error;
    }
    // Where nobody has counted, the usual size has room for what the C library takes.
    let long_enough = thread_locals::bytes().map_or(ptr::null(), |locals| {
        // SAFETY: the attributes were initialised above.
        unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack_bytes + locals) };
        attributes.as_ptr()
    });
    let mut create = |attributes| {
        // SAFETY: the attributes are null or were initialised above, `handle` has room for the result, and `main` is a function of the required type.
        unsafe { libc::pthread_create(handle.as_mut_ptr(), attributes, main, ptr::null_mut()) }
    };
    let mut error = create(long_enough);
    if error == libc::EINVAL {
        // The C library takes more of a stack than all objects have: with a stack of the usual size there may be room.
        error = create(ptr::null());
    }
    // SAFETY: the attributes were initialised above, and are not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    error
}

pub use thread_locals::count as count_thread_locals;

/// What glibc takes of a thread's stack for thread-local storage.
#[cfg(target_env = "gnu")]
mod thread_locals {
    use crate::weak_symbols::has_other_malloc;
    use core::ffi::{c_int, c_void};
    use core::slice;
    use freestone_base::sync::{AtomicUsize, Ordering};

    /// What [`count`] has found; 0: it was not called yet.
    static FOUND: AtomicUsize = AtomicUsize::new(0);

    /// At most how many bytes: those of all objects, of which some may be elsewhere. `None` before they are counted.
    pub(super) fn bytes() -> Option<usize> {
        Some(FOUND.load(Ordering::Relaxed)).filter(|&found| found > 0)
    }

    /// Counts what threads have of thread-local storage on their stacks, for those that are started later. For constructors: it takes a lock of the loader. A
    /// thread that allocates may hold what the holder of that lock waits for, and a child of a process with several threads may find it locked for good. What is
    /// loaded later has little room on stacks, or none.
    ///
    /// A program with a `malloc` of its own, for whose threads little is left to do, may have its own function for this as well: ThreadSanitizer's crashes
    /// before it has started, which is after the constructors of preloaded libraries. Then nothing is counted.
    pub fn count() {
        if has_other_malloc() {
            return;
        }
        let mut bytes = 0_usize;
        // SAFETY: the callback has this type, and gets a pointer to a local number.
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut bytes).cast()) };
        FOUND.store(bytes, Ordering::Relaxed);
    }

    /// Adds what one object has to `sum`.
    unsafe extern "C" fn add(object: *mut libc::dl_phdr_info, _bytes: usize, sum: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid description.
        let object = unsafe { &*object };
        if object.dlpi_phdr.is_null() {
            // A static program that starts: the C library does not know its headers yet.
            return 0;
        }
        // SAFETY: the description has so many headers.
        let headers = unsafe { slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)) };
        for header in headers.iter().filter(|header| header.p_type == libc::PT_TLS) {
            // SAFETY: `count` passes a pointer to its local number.
            unsafe { *sum.cast::<usize>() += (header.p_memsz + header.p_align) as usize };
        }
        0
    }
}

/// Other C libraries make the stack longer by what they take of it.
#[cfg(not(target_env = "gnu"))]
mod thread_locals {
    pub(super) fn bytes() -> Option<usize> {
        Some(0)
    }

    /// Nothing is to be counted.
    pub fn count() {}
}

/// Which signals the calling thread blocks, by the kernel's own call.
///
/// A C library uses the signals from 32 to below `SIGRTMIN` itself: to cancel threads, to change the identity of all, and for timers that call functions in threads.
/// Its function for this leaves them out of every set. Who set back with it what a thread blocked before would have it block them no more: the thread
/// of glibc that waits for the signal of such a timer would be killed by the next one.
#[cfg(door = "linux")]
pub(crate) mod signal_mask {
    /// A set of signals as the kernel has it: a bit for each of 64, the lowest for signal 1.
    pub(crate) type SignalSet = u64;

    /// The first signal that the C library uses itself.
    const FIRST_OF_LIBRARY: libc::c_int = 32;

    /// The set of one signal.
    pub(crate) const fn set_of(signal: libc::c_int) -> SignalSet {
        1 << (signal - 1)
    }

    /// Blocks every signal that the C library does not use itself. Returns what the thread blocked before.
    pub(crate) fn block_all() -> SignalSet {
        let of_library = set_of(libc::SIGRTMIN()) - set_of(FIRST_OF_LIBRARY);
        change_blocked(libc::SIG_BLOCK, !of_library)
    }

    /// Lets the thread block what it blocked `before`.
    pub(crate) fn set_back(before: SignalSet) {
        change_blocked(libc::SIG_SETMASK, before);
    }

    /// Changes the set that the thread blocks, as `how` says. Returns the one before.
    #[inline(never)]
    pub(crate) fn change_blocked(how: libc::c_int, set: SignalSet) -> SignalSet {
        let mut before = 0;
        let (number, bytes) = (libc::SYS_rt_sigprocmask, size_of::<SignalSet>());
        // SAFETY: the call reads one local and writes the other, which have the size that it is told.
        unsafe { libc::syscall(number, how, &raw const set, &raw mut before, bytes) };
        before
    }
}

/// Which signals the calling thread blocks, by the C library's function.
#[cfg(not(door = "linux"))]
mod signal_mask {
    use core::mem;

    /// Blocks every signal. Returns those that the thread blocked before.
    pub(super) fn block_all() -> libc::sigset_t {
        // SAFETY: a `sigset_t` is an array of integers; zeros are an empty set.
        let mut all = unsafe { mem::zeroed() };
        // SAFETY: the call writes to the set, which has room.
        unsafe { libc::sigfillset(&mut all) };
        set(&all)
    }

    /// Lets the thread block what it blocked `before`.
    pub(super) fn set_back(before: libc::sigset_t) {
        set(&before);
    }

    fn set(signals: &libc::sigset_t) -> libc::sigset_t {
        // SAFETY: a `sigset_t` is an array of integers; zeros are an empty set.
        let mut before = unsafe { mem::zeroed() };
        // SAFETY: the call reads one set and writes to the other, which has room.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, signals, &mut before) };
        before
    }
}

/// Whether the calling thread can be cancelled.
#[cfg(not(target_os = "android"))]
mod cancel {
    use core::ffi::c_int;

    unsafe extern "C" {
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }

    /// The same in glibc, musl and FreeBSD's library.
    const DISABLE: c_int = if cfg!(target_vendor = "apple") { 0 } else { 1 };

    /// Makes the calling thread one that cannot be cancelled. Returns how it was before.
    pub(super) fn put_off() -> c_int {
        set(DISABLE)
    }

    /// Has the calling thread cancelled as it was before [`put_off`].
    pub(super) fn allow_as(before: c_int) {
        set(before);
    }

    fn set(state: c_int) -> c_int {
        let mut before = 0;
        // SAFETY: `before` has room for the result; `state` is one of the two that there are, or what this call returned.
        unsafe { pthread_setcancelstate(state, &mut before) };
        before
    }
}

/// No thread can be cancelled.
#[cfg(target_os = "android")]
mod cancel {
    /// How it was before: no different.
    pub(super) struct Same;

    pub(super) fn put_off() -> Same {
        Same
    }

    pub(super) fn allow_as(_: Same) {}
}

/// A function that is called in each thread that ends with a value of its own, and the threads' values.
#[derive(Debug)]
pub struct ExitHook {
    /// The key of the values, or [`NO_KEY`].
    key: AtomicUsize,
}

/// How often the function may put off its work.
const ROUNDS_MOST: u32 = 2;

/// There is no key yet, or the C library had none left.
const NO_KEY: usize = usize::MAX;

impl ExitHook {
    /// No function.
    #[must_use]
    pub const fn new() -> Self {
        Self { key: AtomicUsize::new(NO_KEY) }
    }

    /// Has `hook` called in each thread that ends with a value, from now on. Called once, and allocates nothing. If the C library has no key left,
    /// [`ExitHook::is_set`] stays `false`.
    pub fn set(&self, hook: unsafe extern "C" fn(*mut c_void)) {
        let mut key = 0;
        // SAFETY: `key` is a valid place for the result, and the destructor a function of the required type.
        if unsafe { libc::pthread_key_create(&mut key, Some(hook)) } == 0 {
            self.key.store(key as usize, Ordering::Relaxed);
        }
    }

    /// Whether there is a function.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.key.load(Ordering::Relaxed) != NO_KEY
    }

    /// Whether the function, which has been called `n` times before, may put off its work by setting a value again: it is called in each round of the
    /// destructors of thread-specific data then, and does its work in the third, so that other destructors, which may free and allocate, run before it.
    #[must_use]
    pub fn may_put_off(&self, n: u32) -> bool {
        n < ROUNDS_MOST
    }

    /// Sets the calling thread's value, which may allocate. `false` if the C library cannot.
    pub fn set_value(&self, value: NonNull<c_void>) -> bool {
        let key = self.key.load(Ordering::Relaxed) as libc::pthread_key_t;
        // SAFETY: the key was created, and is never deleted; without one the call fails.
        self.is_set() && unsafe { libc::pthread_setspecific(key, value.as_ptr()) == 0 }
    }
}

impl Default for ExitHook {
    fn default() -> Self {
        Self::new()
    }
}
