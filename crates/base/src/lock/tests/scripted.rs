//! The contended paths of the lock, one step at a time: waiting runs the next step of a script, which does what other threads would do meanwhile.
//! So every state of the drawing in the module header is reached, on one thread and in a known order.
extern crate std;

use super::forker;
use crate::lock::word::{CONTENDED, FORK, FREE, GRANTED, HELD, STARVED, WAITED_FOR, WANTED};
use crate::lock::{Guard, Lock, Parking};
use crate::sync::{AtomicU32, Ordering};
use core::marker::PhantomData;
use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::vec::Vec;

/// What happens during one wait; it gets the lock's word.
type Step = Box<dyn FnOnce(&AtomicU32)>;

std::thread_local! {
    /// Steps still to come, each with the state in which the waiter should go to sleep.
    static SCRIPT: RefCell<VecDeque<(u32, Step)>> = const { RefCell::new(VecDeque::new()) };
    /// Wake-ups: `false` for one waiter, `true` for all.
    static WAKES: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
    static IS_FORKING: Cell<bool> = const { Cell::new(false) };
}

struct Scripted;

// SAFETY: it does not change the word.
#[allow(unsafe_code)]
unsafe impl Parking for Scripted {
    const WAITS_MOST: u32 = 2;

    fn wait(word: &AtomicU32, expected: u32) {
        let (state, step) = SCRIPT.with_borrow_mut(VecDeque::pop_front).expect("nothing is left to wait for");
        assert_eq!(expected, state, "the waiter sleeps in another state");
        assert_eq!(word.load(Ordering::Relaxed), state, "the word says what the waiter expects");
        step(word);
    }

    fn wake_one(_word: &AtomicU32) {
        WAKES.with_borrow_mut(|wakes| wakes.push(false));
    }

    fn wake_all(_word: &AtomicU32) {
        WAKES.with_borrow_mut(|wakes| wakes.push(true));
    }

    fn is_forking() -> bool {
        IS_FORKING.get()
    }
}

type Scripts = Lock<u32, Scripted>;

fn state(lock: &Scripts) -> u32 {
    lock.word.state.load(Ordering::Relaxed)
}

fn wakes() -> Vec<bool> {
    WAKES.take()
}

/// Adds a wait: the state to sleep in, and what happens meanwhile.
fn then(state: u32, step: impl FnOnce(&AtomicU32) + 'static) {
    SCRIPT.with_borrow_mut(|script| script.push_back((state, Box::new(step))));
}

/// Every lock of these tests: Miri reports what nothing refers to any more.
static LOCKS: Mutex<Vec<&'static Scripts>> = Mutex::new(Vec::new());

/// A lock that is free.
fn free() -> &'static Scripts {
    let lock: &Scripts = Box::leak(Box::new(Lock::new(7)));
    LOCKS.lock().unwrap_or_else(PoisonError::into_inner).push(lock);
    lock
}

/// A lock that another thread holds. A step can make that thread release it.
fn held() -> &'static Scripts {
    let lock = free();
    core::mem::forget(lock.lock());
    assert_eq!(state(lock), HELD);
    lock
}

/// The guard of the thread that holds the lock.
fn guard_of(lock: &'static Scripts) -> Guard<'static, u32, Scripted, 0> {
    Guard { lock, value: PhantomData }
}

fn other_releases(lock: &'static Scripts) -> impl FnOnce(&AtomicU32) {
    move |_| drop(guard_of(lock))
}

fn is_over() {
    assert!(SCRIPT.with_borrow(VecDeque::is_empty), "a wait did not happen");
}

#[test]
fn a_waiter_sleeps_on_a_contended_lock_and_wakes_the_next_when_it_leaves() {
    let lock = held();
    then(CONTENDED, other_releases(lock));
    let guard = lock.lock();
    assert_eq!((state(lock), wakes()), (CONTENDED, std::vec![false]), "others may wait as well");
    drop(guard);
    assert_eq!((state(lock), wakes()), (FREE, std::vec![false]));
    is_over();
}

#[test]
fn a_release_without_waiters_wakes_no_thread() {
    let lock = held();
    drop(guard_of(lock));
    assert_eq!((state(lock), wakes()), (FREE, std::vec![]));
}

#[test]
fn a_lock_that_is_released_while_a_waiter_spins_is_taken_at_once() {
    let lock = held();
    then(CONTENDED, |word| word.store(HELD, Ordering::Relaxed));
    then(CONTENDED, other_releases(lock));
    drop(lock.lock());
    assert_eq!(state(lock), FREE);
    is_over();
}

#[test]
fn a_thread_that_was_overtaken_too_often_is_handed_the_lock() {
    let lock = held();
    then(CONTENDED, |_| {});
    then(CONTENDED, |_| {});
    then(CONTENDED | STARVED, |_| {});
    then(CONTENDED | STARVED, move |word| {
        drop(guard_of(lock));
        assert_eq!(word.load(Ordering::Relaxed), GRANTED);
        assert!(lock.try_lock().is_none(), "no other thread gets it");
    });
    let guard = lock.lock();
    assert_eq!((state(lock), wakes()), (CONTENDED, std::vec![true]));
    drop(guard);
    assert_eq!((state(lock), wakes()), (FREE, std::vec![false]));
    is_over();
}

#[test]
fn a_second_overtaken_thread_waits_until_the_first_has_had_the_lock() {
    let lock = held();
    lock.word.state.store(CONTENDED | STARVED, Ordering::Relaxed);
    for _ in 0..2 {
        then(CONTENDED | STARVED | WAITED_FOR, |_| {});
    }
    then(CONTENDED | STARVED | WAITED_FOR, move |word| {
        drop(guard_of(lock));
        assert_eq!(word.load(Ordering::Relaxed), GRANTED);
    });
    then(GRANTED | WAITED_FOR, move |word| {
        // The first notices, and leaves.
        word.store(CONTENDED, Ordering::Relaxed);
        drop(guard_of(lock));
    });
    drop(lock.lock());
    assert_eq!((state(lock), wakes()), (FREE, std::vec![true, false, false]));
    is_over();
}

#[test]
fn a_fork_is_handed_the_lock_at_the_next_release() {
    let lock = held();
    then(HELD | WANTED, other_releases(lock));
    lock.acquire_raw();
    assert_eq!((state(lock), wakes()), (FORK, std::vec![true]));
    release(lock);
    assert_eq!((state(lock), wakes()), (FREE, std::vec![]));
    is_over();
}

#[test]
fn a_fork_that_is_handed_a_contended_lock_wakes_a_waiter_at_its_end() {
    let lock = held();
    lock.word.state.store(CONTENDED, Ordering::Relaxed);
    then(CONTENDED | WANTED, other_releases(lock));
    lock.acquire_raw();
    assert_eq!((state(lock), wakes()), (FORK | WAITED_FOR, std::vec![true]));
    release(lock);
    assert_eq!((state(lock), wakes()), (FREE, std::vec![false]));
    is_over();
}

#[test]
fn a_fork_goes_before_a_thread_that_was_overtaken() {
    let lock = held();
    lock.word.state.store(CONTENDED | STARVED | WANTED, Ordering::Relaxed);
    drop(guard_of(lock));
    assert_eq!(state(lock), FORK | WAITED_FOR);
}

#[test]
fn a_second_fork_waits_for_the_end_of_the_first() {
    let lock = held();
    lock.word.state.store(FORK, Ordering::Relaxed);
    then(FORK | WAITED_FOR, move |_| release(lock));
    lock.acquire_raw();
    assert_eq!((state(lock), wakes()), (FORK | WAITED_FOR, std::vec![false]), "a third may wait");
    release(lock);
    assert_eq!((state(lock), wakes()), (FREE, std::vec![false]));
    is_over();
}

#[test]
fn the_thread_that_forks_enters_again_and_again_and_others_wait() {
    let lock = free();
    lock.acquire_raw();
    IS_FORKING.set(true);
    drop(lock.lock());
    let guard = lock.lock();
    assert_eq!(state(lock), FORK | HELD);
    lock.word.state.fetch_or(WAITED_FOR, Ordering::Relaxed);
    drop(guard);
    assert_eq!((state(lock), wakes()), (FORK | WAITED_FOR, std::vec![]), "the mark stays");
    IS_FORKING.set(false);
    then(FORK | WAITED_FOR, move |_| release(lock));
    drop(lock.lock());
    assert_eq!((state(lock), wakes()), (FREE, std::vec![false, false]));
    is_over();
}

#[test]
fn there_is_one_guard_at_a_time_even_if_every_thread_claims_to_fork() {
    let lock = free();
    lock.acquire_raw();
    IS_FORKING.set(true);
    core::mem::forget(lock.lock());
    then(FORK | HELD | WAITED_FOR, move |word| {
        release(lock);
        assert_eq!(word.load(Ordering::Relaxed), HELD, "the fork is over, and the guard is still there");
    });
    then(CONTENDED, other_releases(lock));
    drop(lock.lock());
    IS_FORKING.set(false);
    assert_eq!((state(lock), wakes()), (FREE, std::vec![false; 3]));
    is_over();
}

#[test]
fn a_thread_that_forks_waits_for_a_lock_that_it_does_not_hold() {
    let lock = held();
    IS_FORKING.set(true);
    then(CONTENDED, other_releases(lock));
    drop(lock.lock());
    IS_FORKING.set(false);
    is_over();
}

#[test]
fn a_lock_that_was_not_taken_for_a_fork_is_left_as_it_is() {
    let lock = held();
    release(lock);
    assert_eq!((state(lock), wakes()), (HELD, std::vec![]));
}

/// Releases what `acquire_raw` took.
fn release(lock: &Scripts) {
    lock.release_raw(forker());
}

#[test]
fn the_end_of_a_fork_leaves_a_lock_that_the_fork_did_not_take_as_it_is() {
    let lock = free();
    lock.release_raw(forker());
    assert_eq!(state(lock), FREE);
    core::mem::forget(lock.lock());
    for held in [HELD, CONTENDED, CONTENDED | WANTED, CONTENDED | STARVED, CONTENDED | WANTED | WAITED_FOR] {
        lock.word.state.store(held, Ordering::Relaxed);
        lock.release_raw(forker());
        assert_eq!((state(lock), wakes()), (held, std::vec![]));
    }
}

std::thread_local! {
    /// Entries less leaves.
    static ENTERED: Cell<i32> = const { Cell::new(0) };
}

struct Counted;

// SAFETY: it does not change the word.
#[allow(unsafe_code)]
unsafe impl Parking for Counted {
    fn wait(_word: &AtomicU32, _expected: u32) {}
    fn wake_one(_word: &AtomicU32) {}
    fn enter() {
        ENTERED.set(ENTERED.get() + 1);
    }
    fn leave() {
        ENTERED.set(ENTERED.get() - 1);
    }
}

#[test]
fn a_thread_that_does_not_get_a_lock_has_not_entered_it() {
    let lock: Lock<u32, Counted> = Lock::new(7);
    let guard = lock.try_lock();
    assert_eq!(ENTERED.get(), 1);
    assert!(lock.try_lock().is_none());
    assert_eq!(ENTERED.get(), 1);
    drop(guard);
    assert_eq!(ENTERED.get(), 0);
    drop(lock.lock());
    assert_eq!(ENTERED.get(), 0);
}
