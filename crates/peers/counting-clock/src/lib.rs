//! A clock that advances by a microsecond when it is read, and only then: preloaded while instructions are counted.
//!
//! Under valgrind a program runs about fifty times slower, but the real clock does not. Whatever an allocator does by the clock, such as
//! returning memory after a second, would be counted fifty times too often and at another place in every run. With this clock, the work
//! depends on the program alone, and counts repeat exactly.
//!
//! Covers `clock_gettime`, `gettimeofday` and `time`, but not the processor's time-stamp counter, which no library can replace.
//!
//! # Safety
//! Exports C's own symbols with C's signatures, and writes only through the pointers that C's functions write through.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicI64, Ordering};

/// Microseconds. It starts well above 0, so that a time some seconds earlier is still positive.
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
    // SAFETY: as for C's function, `now` points to a `timespec` that can be written.
    unsafe { now.write(Time { seconds: us / 1_000_000, fraction: us % 1_000_000 * 1000 }) };
    0
}

/// # Safety
/// `now` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(now: *mut Time, _zone: *mut c_void) -> c_int {
    let us = read();
    // SAFETY: as for C's function, `now` points to a `timeval` that can be written.
    unsafe { now.write(Time { seconds: us / 1_000_000, fraction: us % 1_000_000 }) };
    0
}

/// # Safety
/// `now` can be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(now: *mut i64) -> i64 {
    let seconds = read() / 1_000_000;
    if !now.is_null() {
        // SAFETY: as for C's function, `now` points to a second count that can be written, because it is not null.
        unsafe { now.write(seconds) };
    }
    seconds
}
