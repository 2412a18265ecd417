#![cfg(not(loom))]
#![allow(unsafe_code)]
use super::*;
use core::mem::offset_of;

#[repr(C)]
struct Object {
    before: u64,
    counters: [AtomicI64; 4],
}

// SAFETY: that is where the four are.
unsafe impl CountsDown for Object {
    const OFFSET: usize = offset_of!(Object, counters);
    const LEN: usize = 4;
}

#[test]
fn counting_down_says_when_it_passes_zero_and_touches_one_counter() {
    let object = Object { before: 7, counters: [const { AtomicI64::new(2) }; 4] };
    let passed: [bool; 4] = core::array::from_fn(|_| {
        // SAFETY: index 2 of 4.
        unsafe { decrement_is_negative(&object, 2) }
    });
    assert_eq!(passed, [false, false, true, true]);
    assert_eq!(object.counters.each_ref().map(|counter| counter.load(Ordering::Relaxed)), [2, 2, -2, 2]);
    assert_eq!(object.before, 7);
}

#[test]
fn counting_up_adds() {
    let counter = AtomicU64::new(1);
    increment(&counter);
    add(&counter, 5);
    assert_eq!(counter.load(Ordering::Relaxed), 7);
}

#[test]
fn counting_down_subtracts_and_goes_below_zero() {
    let counter = AtomicI64::new(1);
    decrement(&counter);
    assert_eq!(counter.load(Ordering::Relaxed), 0);
    decrement(&counter);
    assert_eq!(counter.load(Ordering::Relaxed), -1);
}
