#![allow(unsafe_code)]
extern crate std;
use super::*;

#[cfg(not(loom))]
#[test]
fn what_is_pushed_is_popped_or_taken_once_newest_first() {
    use std::sync::atomic::AtomicU32;
    let (stack, links) = (TaggedStack::new(), [const { AtomicU32::new(9) }; 5]);
    let push = |number: u32| stack.push(number, |next| links[number as usize].store(next, Ordering::Relaxed));
    let pop = || stack.pop(|number| links[number as usize].load(Ordering::Relaxed));
    assert_eq!((pop(), stack.take()), (None, 0));
    (1..5).for_each(push);
    assert_eq!((stack.peek(), pop(), pop(), stack.peek()), (4, Some(4), Some(3), 2));
    push(4);
    assert_eq!((stack.take(), stack.take(), pop()), (4, 0, None));
    assert_eq!(links.map(AtomicU32::into_inner)[1..], [0, 1, 2, 2]);
}

#[cfg(not(loom))]
#[test]
fn a_head_that_was_there_before_has_another_tag() {
    let stack = TaggedStack::new();
    stack.push(1, |_| {});
    let before = stack.0.load(Ordering::Relaxed);
    assert_eq!(stack.pop(|_| 0), Some(1));
    stack.push(1, |_| {});
    let after = stack.0.load(Ordering::Relaxed);
    assert!(before as u32 == after as u32 && before != after);
    assert_eq!(packed(u64::MAX, 7), 7, "the tag begins again");
}

/// The objects behind the numbers are loom cells: a thread that has a number it did not get, or gets it without an order, is a data race.
#[cfg(loom)]
mod models {
    use super::*;
    use crate::sync::{AtomicBool, AtomicU32};
    use loom::cell::UnsafeCell;
    use std::sync::Arc;

    struct Shared {
        stack: TaggedStack,
        links: [AtomicU32; 3],
        objects: [UnsafeCell<u32>; 3],
    }

    impl Shared {
        fn new() -> Arc<Self> {
            let (links, objects) = ([0, 0, 0].map(AtomicU32::new), [0, 0, 0].map(UnsafeCell::new));
            Arc::new(Self { stack: TaggedStack::new(), links, objects })
        }

        /// The numbers 2 and 1 are in the list, 2 first.
        fn with_two() -> Arc<Self> {
            let shared = Self::new();
            shared.push(1);
            shared.push(2);
            shared
        }

        /// Writes to the object of a number that the caller has.
        fn touch(&self, number: u32) {
            // SAFETY: the caller has the number; loom checks that no other thread has it.
            self.objects[number as usize].with_mut(|object| unsafe { *object += 1 });
        }

        fn push(&self, number: u32) {
            self.touch(number);
            self.stack.push(number, |next| self.links[number as usize].store(next, Ordering::Relaxed));
        }

        fn pop(&self) -> Option<u32> {
            let number = self.stack.pop(|number| self.links[number as usize].load(Ordering::Relaxed));
            number.inspect(|&number| self.touch(number))
        }

        /// Takes all; returns how many.
        fn take(&self) -> u32 {
            let (mut n, mut next) = (0, self.stack.take());
            while next != 0 {
                self.touch(next);
                next = self.links[next as usize].load(Ordering::Relaxed);
                n += 1;
            }
            n
        }
    }

    /// One pops two numbers and pushes the first again while the other pops: that must not bring back the second (ABA).
    #[test]
    fn a_number_that_is_popped_and_pushed_again_does_not_bring_others_back() {
        loom::model(|| {
            let shared = Shared::with_two();
            let other = Arc::clone(&shared);
            let popper = loom::thread::spawn(move || u32::from(other.pop().is_some()));
            let (first, second) = (shared.pop(), shared.pop());
            first.iter().for_each(|&number| shared.push(number));
            let n_out = u32::from(second.is_some()) + popper.join().unwrap();
            assert_eq!(n_out + shared.take(), 2);
        });
    }

    #[test]
    fn one_pushes_and_pops_while_another_takes_all_and_each_number_is_had_once() {
        loom::model(|| {
            let shared = Shared::with_two();
            let other = Arc::clone(&shared);
            let taker = loom::thread::spawn(move || other.take());
            let popped = shared.pop();
            popped.iter().for_each(|&number| shared.push(number));
            let also = u32::from(shared.pop().is_some());
            assert_eq!(taker.join().unwrap() + also + shared.take(), 2);
        });
    }

    #[test]
    fn two_push_and_take_and_each_number_is_had_once() {
        loom::model(|| {
            let shared = Shared::new();
            let other = Arc::clone(&shared);
            let pusher = loom::thread::spawn(move || {
                other.push(1);
                other.take()
            });
            shared.push(2);
            let taken = shared.take();
            assert_eq!(taken + pusher.join().unwrap() + shared.take(), 2);
        });
    }

    /// As the page heap's background thread says that it sleeps, and takes the emptied spans and freed runs that are listed.
    #[test]
    fn a_push_that_a_take_misses_sees_what_the_taker_wrote_before() {
        loom::model(|| {
            let shared = Arc::new((TaggedStack::new(), AtomicBool::new(false)));
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
