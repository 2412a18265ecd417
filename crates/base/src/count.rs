//! Counters that one thread writes and any thread may read.
#![allow(unsafe_code)]
//!
//! An increment is a plain load and a plain store, both relaxed atomics: the one writer needs no more, and a reader sees a value
//! the counter had. On x86-64 each is one instruction; the counting down of [`decrement_is_negative`] is written in assembly
//! because the compiler does not keep the flags of a decrement in memory.
//!
//! # Safety
//! The assembly makes one aligned 8-byte access to the counter that the caller names, like the relaxed load and store it stands for.

use crate::sync::{AtomicI64, AtomicU64, Ordering};

/// Adds one. For the counter's only writer.
#[inline(always)]
pub fn increment(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds `n`. For the counter's only writer.
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

/// Subtracts one from counter `index` of `object`, and says whether it is below zero now. For the counter's only writer.
///
/// # Safety
/// - `index` is below `T::LEN`.
#[inline(always)]
pub unsafe fn decrement_is_negative<T: CountsDown>(object: &T, index: usize) -> bool {
    debug_assert!(index < T::LEN);
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    {
        // SAFETY: see the module header; the counter is inside `object` by the caller's promise.
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
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
    {
        let start = core::ptr::from_ref(object).cast::<u8>();
        // SAFETY: as above.
        let counter = unsafe { &*start.add(T::OFFSET).cast::<AtomicI64>().add(index) };
        // Not `decrement` and a load: the compiler would load what it has just stored.
        let left = counter.load(Ordering::Relaxed).wrapping_sub(1);
        counter.store(left, Ordering::Relaxed);
        left < 0
    }
}

#[cfg(test)]
mod tests;
