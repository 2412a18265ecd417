//! Counters that one thread writes and any thread may read.
#![allow(unsafe_code)]
//!
//! An increment is a relaxed load and a relaxed store: with one writer that loses nothing, and a reader sees a value that the counter had. On
//! x86-64 the compiler makes one instruction of the two. [`decrement_is_negative`] is written in assembly there, because the compiler does not
//! use the flags that a decrement in memory sets. (Compilers before 1.87 cannot jump out of assembly: `build.rs` says which this is.)
//!
//! # Safety
//! The assembly makes one aligned 8-byte access to a counter inside the object, as the relaxed load and store do elsewhere.

use crate::sync::{AtomicI64, AtomicU64, Ordering};

/// Adds one. For the counter's only writer.
#[inline(always)]
pub fn increment(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds `n`. For the counter's only writer.
///
/// ```
/// use freestone_base::count;
/// use freestone_base::sync::{AtomicU64, Ordering};
///
/// let freed = AtomicU64::new(0);
/// count::increment(&freed);
/// count::add(&freed, 31);
/// assert_eq!(freed.load(Ordering::Relaxed), 32);
/// ```
#[inline(always)]
pub fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// Subtracts one. For the counter's only writer.
#[inline(always)]
pub fn decrement(counter: &AtomicI64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
}

/// An object with an array of counters inside.
///
/// # Safety
/// `OFFSET` bytes into every value of the type there are `LEN` counters in a row.
pub unsafe trait CountsDown {
    /// Where the counters are.
    const OFFSET: usize;
    /// How many there are.
    const LEN: usize;
}

/// Subtracts one from counter `index` of `object`, and returns whether it is negative now. For the counter's only writer.
///
/// # Safety
/// - `index` is below `T::LEN`.
#[inline(always)]
pub unsafe fn decrement_is_negative<T: CountsDown>(object: &T, index: usize) -> bool {
    debug_assert!(index < T::LEN);
    #[cfg(all(asm_jumps, target_arch = "x86_64", not(miri), not(loom)))]
    {
        // SAFETY: `index` is below `LEN`, so by the contract of `CountsDown` the address is that of a counter inside `object`.
        unsafe {
            core::arch::asm!(
                "dec qword ptr [{object} + 8*{index} + {offset}]",
                "js {negative}",
                object = in(reg) object,
                index = in(reg) index,
                offset = const T::OFFSET,
                negative = label { return true },
                options(nostack),
            );
        }
        false
    }
    #[cfg(not(all(asm_jumps, target_arch = "x86_64", not(miri), not(loom))))]
    {
        let start = core::ptr::from_ref(object).cast::<u8>();
        // SAFETY: `index` is below `LEN`, so by the contract of `CountsDown` a counter is there, inside `object`.
        let counter = unsafe { &*start.wrapping_add(T::OFFSET + index * size_of::<AtomicI64>()).cast::<AtomicI64>() };
        // Not `decrement` and then a load: the compiler would load from memory what it has just stored.
        let left = counter.load(Ordering::Relaxed).wrapping_sub(1);
        counter.store(left, Ordering::Relaxed);
        left < 0
    }
}

#[cfg(test)]
mod tests;
