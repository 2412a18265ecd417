extern crate std;
use crate::lock::tests::forker;
use crate::lock::{Lock, Parking, Spin};
use crate::sync::{AtomicU32, spin_hint};
use std::cell::Cell;
use std::panic::catch_unwind;
use std::string::String;

/// A number for each thread: the address of something of its own.
struct Numbered;

std::thread_local! {
    static OWN: u64 = const { 0 };
    static IS_FORKING: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: it does not change the word.
#[allow(unsafe_code)]
unsafe impl Parking for Numbered {
    fn wait(_word: &AtomicU32, _expected: u32) {
        spin_hint();
    }
    fn wake_one(_word: &AtomicU32) {}
    fn this_thread() -> usize {
        OWN.with(|own| core::ptr::from_ref(own).addr())
    }
    fn is_forking() -> bool {
        IS_FORKING.get()
    }
}

type Ranked<const RANK: u8> = Lock<(), Numbered, RANK>;

/// The message of the panic that `wrong` ends in.
fn complaint(wrong: fn()) -> String {
    let panic = catch_unwind(wrong).expect_err("that order is wrong");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn a_lock_of_a_lower_rank_panics() {
    let said = complaint(|| {
        let (page, registry) = (Ranked::<30>::new(()), Ranked::<10>::new(()));
        let _page = page.lock();
        let _registry = registry.lock();
    });
    assert_eq!(said, "a lock of rank 10 is taken while one of rank 30 is held");
}

#[test]
fn a_second_lock_of_one_rank_panics_but_not_for_a_fork() {
    let two = || (Ranked::<20>::new(()), Ranked::<20>::new(()));
    let said = complaint(|| {
        let (one, other) = (Ranked::<20>::new(()), Ranked::<20>::new(()));
        let _one = one.lock();
        let _other = other.lock();
    });
    assert_eq!(said, "a lock of rank 20 is taken while one of rank 20 is held");
    let (one, other) = two();
    one.acquire_raw();
    other.acquire_raw();
    for lock in [&one, &other] {
        lock.release_raw(forker());
    }
}

#[test]
fn a_fork_that_takes_locks_in_falling_order_panics() {
    let said = complaint(|| {
        let (page, list) = (Ranked::<30>::new(()), Ranked::<20>::new(()));
        page.acquire_raw();
        let unwinding = catch_unwind(core::panic::AssertUnwindSafe(|| list.acquire_raw()));
        page.release_raw(forker());
        std::panic::resume_unwind(unwinding.expect_err("that order is wrong"));
    });
    assert_eq!(said, "a lock of rank 20 is taken while one of rank 30 is held");
}

#[test]
fn what_was_released_is_forgotten_and_other_threads_do_not_count() {
    let (page, registry) = (Ranked::<30>::new(()), Ranked::<10>::new(()));
    drop(page.lock());
    drop(registry.lock());
    let _page = page.lock();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(registry.lock()));
    });
}

#[test]
fn locks_without_a_rank_have_no_order() {
    let (page, free) = (Ranked::<30>::new(()), Ranked::<0>::new(()));
    let _page = page.lock();
    let _free = free.lock();
}

/// During a fork the lock's word counts the entries, not the table: the table has what `acquire_raw` took.
#[test]
fn entering_and_leaving_during_a_fork_changes_nothing_about_what_is_held() {
    let said = complaint(|| {
        let (list, registry) = (Ranked::<20>::new(()), Ranked::<10>::new(()));
        list.acquire_raw();
        IS_FORKING.set(true);
        drop(list.lock());
        drop(registry.lock());
        IS_FORKING.set(false);
        let take = || catch_unwind(core::panic::AssertUnwindSafe(|| drop(registry.lock())));
        let still_held = take().expect_err("the list is held");
        list.release_raw(forker());
        take().expect("nothing is held");
        std::panic::resume_unwind(still_held);
    });
    assert_eq!(said, "a lock of rank 10 is taken while one of rank 20 is held");
}

#[test]
fn threads_without_a_number_are_not_checked() {
    let (page, registry) = (Lock::<(), Spin, 30>::new(()), Lock::<(), Spin, 10>::new(()));
    let _page = page.lock();
    let _registry = registry.lock();
}
