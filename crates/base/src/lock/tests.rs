#![allow(unsafe_code)]
extern crate std;
use super::*;
use std::sync::Arc;

#[cfg(not(loom))]
mod scripted;

/// The proof for a thread of a test.
pub(in crate::lock) fn forker() -> Forker {
    // SAFETY: a test releases what its own thread took with `acquire_raw`, and has no guard then.
    unsafe { Forker::new() }
}

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

/// Whether a type is `Sync`: the method of the type itself goes before that of the trait.
struct Shared<T>(core::marker::PhantomData<T>);
trait NotSync {
    fn is_sync(&self) -> bool {
        false
    }
}
impl<T> NotSync for Shared<T> {}
impl<T: Sync> Shared<T> {
    #[allow(clippy::unused_self)]
    fn is_sync(&self) -> bool {
        true
    }
}

#[test]
fn a_guard_is_shared_between_threads_only_if_its_value_can_be() {
    assert!(Shared::<Guard<'static, u32, Spin, 0>>(core::marker::PhantomData).is_sync());
    assert!(Shared::<Lock<std::cell::Cell<u32>>>(core::marker::PhantomData).is_sync());
    assert!(!Shared::<Guard<'static, std::cell::Cell<u32>, Spin, 0>>(core::marker::PhantomData).is_sync());
}

/// The value is a loom cell: two accesses that the lock does not order are a data race, whatever the value is. Waiting is a model
/// of the futex: a lost wake-up is a deadlock.
#[cfg(loom)]
mod models {
    use super::*;
    use crate::sync::parked::{Impatient, Parked};
    use loom::cell::UnsafeCell;
    use std::vec::Vec;

    type Counter<P> = Arc<Lock<UnsafeCell<u32>, P>>;

    fn count<P: Parking>(cell: &UnsafeCell<u32>) {
        // SAFETY: the lock is held, which is what the model is about.
        cell.with_mut(|value| unsafe { *value += 1 });
    }

    /// [`count`], by a thread that took the lock for a fork.
    fn count_raw<P: Parking>(lock: &Counter<P>) {
        // SAFETY: the lock is held, which is what the model is about.
        count::<P>(unsafe { &*lock.value.get() });
    }

    fn meet<P: Parking + 'static>(n_threads: usize, enter: fn(&Counter<P>)) {
        let lock: Counter<P> = Arc::new(Lock::new(UnsafeCell::new(0)));
        let threads: Vec<_> = (1..n_threads)
            .map(|_| {
                let lock = Arc::clone(&lock);
                loom::thread::spawn(move || enter(&lock))
            })
            .collect();
        enter(&lock);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let guard = lock.lock();
        // SAFETY: as above.
        let counted = guard.with(|value| unsafe { *value });
        assert_eq!(counted, n_threads as u32);
    }

    #[test]
    fn two_threads_never_meet_inside_and_none_sleeps_for_ever() {
        loom::model(|| meet::<Parked>(2, |lock| count::<Parked>(&lock.lock())));
    }

    /// Three threads, of which two may sleep at once; all schedules of two preemptions.
    #[test]
    fn three_threads_never_meet_inside_and_none_sleeps_for_ever() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| meet::<Parked>(3, |lock| count::<Parked>(&lock.lock())));
    }

    /// As above, where every thread that has to wait is handed the lock.
    #[test]
    fn threads_that_are_handed_the_lock_never_meet_inside_and_none_sleeps_for_ever() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| meet::<Impatient>(3, |lock| count::<Impatient>(&lock.lock())));
    }

    #[test]
    fn two_threads_that_spin_never_meet_inside() {
        loom::model(|| meet::<Spin>(2, |lock| count::<Spin>(&lock.lock())));
    }

    #[test]
    fn a_thread_that_only_tries_never_meets_another_inside() {
        loom::model(|| {
            meet::<Parked>(2, |lock| {
                let tried = lock.try_lock();
                count::<Parked>(&tried.unwrap_or_else(|| lock.lock()));
            });
        });
    }

    /// The lock is handed to the thread that forks, ahead of a sleeping waiter, which gets it afterwards.
    #[test]
    fn a_fork_that_waits_is_handed_the_lock_and_no_thread_sleeps_for_ever() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let lock: Counter<Parked> = Arc::new(Lock::new(UnsafeCell::new(0)));
            let other = |raw: bool| {
                let lock = Arc::clone(&lock);
                loom::thread::spawn(move || {
                    if raw {
                        lock.acquire_raw();
                        count_raw(&lock);
                        lock.release_raw(forker());
                    } else {
                        count::<Parked>(&lock.lock());
                    }
                })
            };
            let threads = [other(true), other(false)];
            count::<Parked>(&lock.lock());
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            // SAFETY: as above.
            assert_eq!(lock.lock().with(|value| unsafe { *value }), 3);
        });
    }

    #[test]
    fn two_forks_at_once_take_turns() {
        loom::model(|| {
            meet::<Parked>(2, |lock| {
                lock.acquire_raw();
                count_raw(lock);
                lock.release_raw(forker());
            });
        });
    }

    /// Two may sleep until the first has ended, which wakes one of them.
    #[test]
    fn of_three_forks_at_once_none_sleeps_for_ever() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            meet::<Parked>(3, |lock| {
                lock.acquire_raw();
                count_raw(lock);
                lock.release_raw(forker());
            });
        });
    }

    #[test]
    fn what_was_written_before_a_fork_is_seen_after_it() {
        loom::model(|| {
            meet::<Parked>(2, |lock| {
                lock.acquire_raw();
                lock.release_raw(forker());
                count::<Parked>(&lock.lock());
            });
        });
    }
}
