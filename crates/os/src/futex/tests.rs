extern crate std;
use super::*;
use freestone_base::lock::{Forker, Lock};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// The proof for a thread of a test.
#[allow(unsafe_code)]
fn forker() -> Forker {
    // SAFETY: a test releases what its own thread took with `acquire_raw`, and has no guard then.
    unsafe { Forker::new() }
}

/// One fork at a time: there is one for the whole process.
static ONE_FORK: Mutex<()> = Mutex::new(());

#[test]
fn the_thread_that_forks_enters_what_it_holds_and_leaves_it_held() {
    let _one = ONE_FORK.lock().unwrap_or_else(PoisonError::into_inner);
    let lock: Lock<u32, Futex, 20> = Lock::new(1);
    let entered = AtomicBool::new(false);
    lock.acquire_raw();
    Futex::begin_fork();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let guard = lock.lock();
            assert!(entered.load(Ordering::SeqCst), "entered while another thread forks");
            *guard
        });
        for _ in 0..1000 {
            *lock.lock() += 1;
            assert!(lock.try_lock().is_none());
        }
        entered.store(true, Ordering::SeqCst);
        Futex::end_fork();
        lock.release_raw(forker());
        assert_eq!(other.join().unwrap(), 1001);
    });
    assert_eq!(*lock.lock(), 1001);
}

#[test]
fn a_lock_that_was_not_taken_for_the_fork_stays_as_it_is() {
    let lock: Lock<u32, Futex, 20> = Lock::new(7);
    let guard = lock.lock();
    lock.release_raw(forker());
    assert!(lock.try_lock().is_none());
    drop(guard);
    assert_eq!(*lock.lock(), 7);
}

#[test]
fn increments_beside_forks_are_never_lost() {
    let _one = ONE_FORK.lock().unwrap_or_else(PoisonError::into_inner);
    let lock: Lock<u32, Futex, 20> = Lock::new(0);
    let rounds = if cfg!(miri) { 20 } else { 5000 };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..rounds).for_each(|_| *lock.lock() += 1));
        }
        for _ in 0..rounds {
            lock.acquire_raw();
            Futex::begin_fork();
            *lock.lock() += 1;
            Futex::end_fork();
            lock.release_raw(forker());
        }
    });
    assert_eq!(*lock.lock(), 4 * rounds);
}
