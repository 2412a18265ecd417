extern crate std;
use super::*;
use crate::Futex;
use freestone_base::lock::Lock;
use std::thread;

/// Whether this build counts.
const COUNTS: bool = cfg!(all(
    door = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(any(miri, loom, shuttle))
));

#[test]
fn a_thread_is_inside_while_it_holds_a_lock_and_no_other_thread_is() {
    let (outer, inner) = (Lock::<_, Futex, 1>::new(0), Lock::<_, Futex, 2>::new(0));
    assert!(!Inside::is_any());
    let first = outer.lock();
    let second = inner.try_lock().expect("it is free");
    assert_eq!(depth(), if COUNTS { 2 } else { 0 });
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(outer.try_lock().is_none());
            assert!(!Inside::is_any(), "another thread's locks");
        });
    });
    drop(second);
    assert_eq!(Inside::is_any(), COUNTS);
    drop(first);
    assert!(!Inside::is_any());
}

#[test]
fn a_thread_that_waits_for_a_lock_is_inside() {
    let (lock, rounds) = (Lock::<_, Futex, 1>::new(0_u32), if cfg!(miri) { 20 } else { 10_000 });
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    *lock.lock() += 1;
                }
                assert!(!Inside::is_any(), "waiting left the counter as it was");
            });
        }
    });
    assert_eq!(*lock.lock(), 4 * rounds);
}

#[test]
fn what_is_begun_twice_ends_with_the_second_end() {
    let first = Inside::begin();
    let second = Inside::begin();
    drop(first);
    assert_eq!(Inside::is_any(), COUNTS);
    drop(second);
    assert!(!Inside::is_any());
}
