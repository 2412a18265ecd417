//! A clock that goes on by a microsecond whenever it is read, and only then: preloaded while instructions are counted.
//!
//! Under valgrind a program runs some fifty times slower than the clock. Whatever an allocator does by the clock (giving memory back after a second,
//! say) would be counted fifty times too often, and in another place in every run. With this clock, what is done depends on the program alone, and
//! counts repeat exactly.
//!
//! Covers `clock_gettime`, `gettimeofday` and `time`; not the processor's own time-stamp counter, which no library can stand in for.
//!
//! # Safety
//! Exports C's own symbols with C's signatures; the pointers are the caller's.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicI64, Ordering};

/// Microseconds since the clock's beginning, which is long enough after 0 that differences to it stay positive.
static NOW_US: AtomicI64 = AtomicI64::new(1_000_000_000);

/// `timespec` and `timeval` on 64-bit Linux: seconds, and a fraction in nanoseconds or microseconds.
#[repr(C)]
pub struct Time {
    seconds: i64,
    fraction: c_long,
}

fn read() -> i64 {
    NOW_US.fetch_add(1, Ordering::Relaxed)
}

/// # Safety
/// `now` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(_clock: c_int, now: *mut Time) -> c_int {
    let us = read();
    // SAFETY: the caller's promise.
    unsafe { now.write(Time { seconds: us / 1_000_000, fraction: us % 1_000_000 * 1000 }) };
    0
}

/// # Safety
/// `now` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(now: *mut Time, _zone: *mut c_void) -> c_int {
    let us = read();
    // SAFETY: the caller's promise.
    unsafe { now.write(Time { seconds: us / 1_000_000, fraction: us % 1_000_000 }) };
    0
}

/// # Safety
/// `now` can be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(now: *mut i64) -> i64 {
    let seconds = read() / 1_000_000;
    if !now.is_null() {
        // SAFETY: the caller's promise.
        unsafe { now.write(seconds) };
    }
    seconds
}
