#![allow(unsafe_code)]
extern crate std;
use super::*;
#[cfg(not(loom))]
use crate::lock::Spin;
use std::sync::Arc;

#[cfg(not(loom))]
#[test]
fn a_failed_attempt_may_be_made_again() {
    let once = Once::<Spin>::new();
    assert!(!once.call(|| false));
    assert!(!once.is_done());
    assert!(once.call(|| true));
    assert!(once.call(|| unreachable!("done already")));
    assert!(once.is_done());
}

#[cfg(not(loom))]
#[test]
fn threads_that_arrive_together_find_it_done() {
    let once = Arc::new(Once::<Spin>::new());
    let threads: std::vec::Vec<_> = (0..4)
        .map(|_| {
            let once = Arc::clone(&once);
            std::thread::spawn(move || assert!(once.call(|| true)))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// What the attempt writes is a loom cell, and waiting is a model of the futex.
#[cfg(loom)]
mod models {
    use super::*;
    use crate::sync::parked::Parked;
    use loom::cell::UnsafeCell;
    use std::vec::Vec;

    struct Shared {
        once: Once<Parked>,
        written: UnsafeCell<u32>,
    }

    impl Shared {
        fn new() -> Arc<Self> {
            Arc::new(Self { once: Once::new(), written: UnsafeCell::new(0) })
        }

        fn read(&self) -> u32 {
            // SAFETY: no thread writes once it is done, which is what the model is about.
            self.written.with(|value| unsafe { *value })
        }

        /// Writes, and says whether that was enough: the attempt before `succeeds_at` fails.
        fn attempt(&self, succeeds_at: u32) -> bool {
            // SAFETY: attempts come one after the other, which is what the model is about.
            self.written.with_mut(|value| unsafe {
                *value += 1;
                *value == succeeds_at
            })
        }
    }

    fn together(n_threads: usize, run: fn(&Shared)) -> Arc<Shared> {
        let shared = Shared::new();
        let threads: Vec<_> = (1..n_threads)
            .map(|_| {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || run(&shared))
            })
            .collect();
        run(&shared);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        shared
    }

    #[test]
    fn every_thread_sees_what_the_attempt_wrote() {
        let run = |shared: &Shared| {
            assert!(shared.once.call(|| shared.attempt(1)));
            assert_eq!(shared.read(), 1);
        };
        loom::model(move || drop(together(2, run)));
    }

    /// Two threads may sleep at once: the one that is woken wakes the other.
    #[test]
    fn no_thread_waits_for_ever() {
        let run = |shared: &Shared| {
            assert!(shared.once.call(|| shared.attempt(1)));
            assert_eq!(shared.read(), 1);
        };
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(move || drop(together(3, run)));
    }

    #[test]
    fn an_attempt_sees_what_one_that_failed_wrote() {
        let run = |shared: &Shared| {
            if shared.once.call(|| shared.attempt(2)) {
                assert_eq!(shared.read(), 2);
            }
        };
        loom::model(move || assert!(together(2, run).once.is_done()));
    }

    #[test]
    fn a_thread_that_finds_it_done_sees_what_the_attempt_wrote() {
        loom::model(|| {
            let shared = Shared::new();
            let other = Arc::clone(&shared);
            let looker = loom::thread::spawn(move || {
                if other.once.is_done() {
                    assert_eq!(other.read(), 1);
                }
            });
            assert!(shared.once.call(|| shared.attempt(1)));
            looker.join().unwrap();
        });
    }
}
