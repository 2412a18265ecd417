extern crate std;
use super::*;
use std::sync::Arc;

#[cfg(not(loom))]
#[test]
fn increments_under_the_lock_are_never_lost() {
    let lock: Arc<Lock<u32>> = Arc::new(Lock::new(0));
    let per_thread = if cfg!(miri) { 50 } else { 20_000 };
    let threads: std::vec::Vec<_> = (0..4)
        .map(|_| {
            let lock = Arc::clone(&lock);
            std::thread::spawn(move || (0..per_thread).for_each(|_| *lock.lock() += 1))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*lock.lock(), 4 * per_thread);
}

#[cfg(not(loom))]
#[test]
fn a_held_lock_is_not_given_out_again() {
    let lock: Lock<u32> = Lock::new(7);
    let guard = lock.lock();
    assert!(lock.try_lock().is_none());
    drop(guard);
    assert_eq!(*lock.try_lock().unwrap(), 7);
}

#[cfg(loom)]
#[test]
fn two_threads_never_meet_inside() {
    loom::model(|| {
        let lock: Arc<Lock<u32>> = Arc::new(Lock::new(0));
        let other = Arc::clone(&lock);
        let thread = loom::thread::spawn(move || *other.lock() += 1);
        *lock.lock() += 1;
        thread.join().unwrap();
        assert_eq!(*lock.lock(), 2);
    });
}
