#![allow(unsafe_code)]
use super::*;
use core::ptr;
use std::cell::{Cell, RefCell};
use std::vec::Vec;

/// What a listener was called with, and the pressure it may raise again.
struct Log<'p> {
    calls: RefCell<Vec<usize>>,
    pressure: &'p Pressure,
}

/// Notes the call, and raises the pressure again, as a listener that allocates does.
unsafe extern "C" fn note(in_use_bytes: usize, argument: *mut c_void) {
    // SAFETY: the tests pass a log that lives longer than the listener is set.
    let log = unsafe { &*argument.cast::<Log<'_>>() };
    log.calls.borrow_mut().push(in_use_bytes);
    log.pressure.notify(|| panic!("a call is under way"));
}

fn listen(pressure: &Pressure, log: &Log<'_>) {
    // SAFETY: the log outlives every call: the tests have one thread each.
    unsafe { pressure.listen(Some(note), ptr::from_ref(log).cast_mut().cast()) };
}

#[test]
fn the_listener_is_called_with_the_bytes_in_use_and_never_within_a_call() {
    let pressure = Pressure::new();
    let log = Log { calls: RefCell::new(Vec::new()), pressure: &pressure };
    listen(&pressure, &log);
    pressure.notify(|| 100);
    pressure.notify(|| 200);
    assert_eq!(*log.calls.borrow(), [100, 200]);
}

#[test]
fn without_a_listener_nothing_is_counted_for_it() {
    let pressure = Pressure::new();
    let counted = Cell::new(false);
    let count = || {
        counted.set(true);
        1
    };
    pressure.notify(count);
    let log = Log { calls: RefCell::new(Vec::new()), pressure: &pressure };
    listen(&pressure, &log);
    // SAFETY: nothing is called.
    unsafe { pressure.listen(None, ptr::null_mut()) };
    pressure.notify(count);
    assert!(!counted.get() && log.calls.borrow().is_empty());
}

#[test]
fn a_call_under_way_in_another_thread_is_not_waited_for_and_ends_with_a_fork() {
    let pressure = Pressure::new();
    let log = Log { calls: RefCell::new(Vec::new()), pressure: &pressure };
    listen(&pressure, &log);
    pressure.notifier.store(Futex::this_thread() + 1, Ordering::Relaxed);
    pressure.notify(|| 1);
    assert!(log.calls.borrow().is_empty());
    pressure.forked();
    pressure.notify(|| 2);
    assert_eq!(*log.calls.borrow(), [2]);
}

#[test]
fn a_call_under_way_in_the_thread_that_forks_goes_on_in_the_child() {
    let pressure = Pressure::new();
    let log = Log { calls: RefCell::new(Vec::new()), pressure: &pressure };
    listen(&pressure, &log);
    pressure.notifier.store(Futex::this_thread(), Ordering::Relaxed);
    pressure.forked();
    pressure.notify(|| 1);
    assert!(log.calls.borrow().is_empty());
}
