//! Clocks for those who need more than milliseconds.

use crate::linux::clock;

/// Microseconds since a fixed moment: monotonic.
///
/// ```
/// let before = freestone_os::clock::monotonic_us();
/// assert!(freestone_os::clock::monotonic_us() >= before);
/// ```
#[must_use]
pub fn monotonic_us() -> u64 {
    let now = clock(libc::CLOCK_MONOTONIC);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

/// Nanoseconds since 1970.
#[must_use]
pub fn since_1970_ns() -> u64 {
    let now = clock(libc::CLOCK_REALTIME);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
