//! Clocks.
#![allow(unsafe_code)]
//!
//! # Safety
//! The calls write a number each, for which there is a place.

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetTickCount64() -> u64;
    fn QueryPerformanceCounter(ticks: *mut u64) -> i32;
    fn QueryPerformanceFrequency(ticks_per_second: *mut u64) -> i32;
    fn GetSystemTimeAsFileTime(time: *mut [u32; 2]);
}

/// Hundreds of nanoseconds from the year 1601 to 1970.
const FROM_1601_TO_1970: u64 = 116_444_736_000_000_000;

/// Milliseconds since the system started: monotonic, in steps of some milliseconds.
#[must_use]
pub(crate) fn monotonic_ms() -> u64 {
    // SAFETY: the call has no arguments.
    unsafe { GetTickCount64() }
}

/// Microseconds since a fixed moment: monotonic.
///
/// ```
/// let before = freestone_os::clock::monotonic_us();
/// assert!(freestone_os::clock::monotonic_us() >= before);
/// ```
#[must_use]
pub fn monotonic_us() -> u64 {
    let (mut ticks, mut per_second) = (0, 1);
    // SAFETY: there is a place for the number.
    unsafe { QueryPerformanceCounter(&raw mut ticks) };
    // SAFETY: as above.
    unsafe { QueryPerformanceFrequency(&raw mut per_second) };
    (u128::from(ticks) * 1_000_000 / u128::from(per_second.max(1))) as u64
}

/// Microseconds for which a processor has run the calling thread, and waits between: the system's own count is in steps of some milliseconds.
#[must_use]
pub fn thread_cpu_us() -> u64 {
    monotonic_us()
}

/// Nanoseconds since 1970.
#[must_use]
pub fn since_1970_ns() -> u64 {
    let mut time = [0; 2];
    // SAFETY: there is a place for the two halves of the number.
    unsafe { GetSystemTimeAsFileTime(&raw mut time) };
    let hundreds = u64::from(time[1]) << 32 | u64::from(time[0]);
    hundreds.saturating_sub(FROM_1601_TO_1970) * 100
}
