//! The kernel's monotonic clock, which all processes share: the library's samples and the lab's observations carry the same times.
//!
//! # Safety
//! One call of the C library with a pointer to a local.
#![allow(unsafe_code)]

/// Milliseconds on the coarse monotonic clock, which lags by at most one tick. The library reads the same clock.
pub(crate) fn monotonic_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a local that can be written, and every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}
