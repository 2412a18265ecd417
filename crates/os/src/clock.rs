//! Clocks of POSIX.
#![allow(unsafe_code)]
//!
//! # Safety
//! The clocks exist, and the structure is a local one.

/// Reads a clock that always exists, through the C library: most need no system call for it.
pub(crate) fn read(id: libc::clockid_t) -> libc::timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is a local one.
    unsafe { libc::clock_gettime(id, &mut now) };
    now
}

/// Reads a clock in microseconds.
#[inline(never)]
fn read_us(id: libc::clockid_t) -> u64 {
    let now = read(id);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

/// Microseconds since a fixed moment: monotonic.
///
/// ```
/// let before = freestone_os::clock::monotonic_us();
/// assert!(freestone_os::clock::monotonic_us() >= before);
/// ```
#[must_use]
pub fn monotonic_us() -> u64 {
    read_us(libc::CLOCK_MONOTONIC)
}

/// Microseconds for which a processor has run the calling thread.
///
/// ```
/// let before = freestone_os::clock::thread_cpu_us();
/// assert!(freestone_os::clock::thread_cpu_us() >= before);
/// ```
#[must_use]
pub fn thread_cpu_us() -> u64 {
    read_us(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds since 1970.
#[must_use]
pub fn since_1970_ns() -> u64 {
    let now = read(libc::CLOCK_REALTIME);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
