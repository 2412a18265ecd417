//! Which signals the calling thread blocks, by the kernel's own call.
#![allow(unsafe_code)]
//!
//! A C library uses the signals from 32 to below `SIGRTMIN` itself: to cancel threads, to change the identity of all, and for timers that call functions in threads.
//! Its function for this leaves them out of every set. Who set back with it what a thread blocked before would have it block them no more: the thread
//! of glibc that waits for the signal of such a timer would be killed by the next one.
//!
//! # Safety
//! System calls get locals of the size that they are told.

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
