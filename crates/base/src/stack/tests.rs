#![allow(unsafe_code)]
extern crate std;
use super::*;

#[cfg(not(loom))]
#[test]
fn what_is_pushed_is_taken_once_newest_first() {
    use std::cell::Cell;
    let (stack, links) = (Stack::new(), [const { Cell::new(9) }; 4]);
    assert!(stack.is_empty() && stack.take() == 0);
    (1..4).for_each(|number| stack.push(number, |next| links[number as usize].set(next)));
    assert!(!stack.is_empty());
    assert_eq!((stack.take(), stack.take()), (3, 0));
    assert_eq!(links.map(Cell::into_inner)[1..], [0, 1, 2]);
}

/// The objects behind the numbers are loom cells: a thread that has a number it did not get, or gets it without an order, is a data race.
#[cfg(loom)]
mod models {
    use super::*;
    use crate::sync::AtomicBool;
    use loom::cell::UnsafeCell;
    use std::sync::Arc;

    struct Shared {
        stack: Stack,
        links: [UnsafeCell<u32>; 3],
    }

    impl Shared {
        fn push(&self, number: u32) {
            // SAFETY: the caller has the number; loom checks that no other thread has it.
            self.stack.push(number, |next| self.links[number as usize].with_mut(|link| unsafe { *link = next }));
        }

        /// Takes all; returns how many, and pushes nothing again.
        fn take(&self) -> u32 {
            let (mut n, mut next) = (0, self.stack.take());
            while next != 0 {
                // SAFETY: the number was taken; loom checks that no other thread has it.
                next = self.links[next as usize].with_mut(|link| unsafe { core::mem::replace(&mut *link, 9) });
                n += 1;
            }
            n
        }
    }

    #[test]
    fn two_push_and_two_take_and_each_number_is_taken_once() {
        loom::model(|| {
            let shared = Arc::new(Shared { stack: Stack::new(), links: [0, 0, 0].map(UnsafeCell::new) });
            let other = Arc::clone(&shared);
            let pusher = loom::thread::spawn(move || {
                other.push(1);
                other.take()
            });
            shared.push(2);
            let taken = shared.take();
            let also = pusher.join().unwrap();
            assert_eq!(taken + also + shared.take(), 2);
        });
    }

    /// As the page heap's background thread says that it sleeps, and takes what is listed.
    #[test]
    fn a_push_that_a_take_misses_sees_what_the_taker_wrote_before() {
        loom::model(|| {
            let shared = Arc::new((Stack::new(), AtomicBool::new(false)));
            let other = Arc::clone(&shared);
            let taker = loom::thread::spawn(move || {
                other.1.store(true, Ordering::Relaxed);
                other.0.take()
            });
            shared.0.push(1, |_| {});
            let is_seen = shared.1.load(Ordering::Relaxed);
            assert!(taker.join().unwrap() == 1 || is_seen);
        });
    }
}
