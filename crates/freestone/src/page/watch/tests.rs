use super::*;
use std::time::{Duration, Instant};

/// How long `wait` takes at least; nothing wakes the thread.
fn time_of(wait: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    wait();
    begun.elapsed()
}

/// An hour: a wait that should end at once, and does not, is seen.
const LONG: u32 = 3_600_000;

#[test]
fn a_wake_since_the_count_was_read_is_not_slept_through() {
    let watch = Watch::new();
    for n in 0..3 {
        let wakes = watch.wakes();
        assert_eq!(wakes, n);
        watch.wake();
        watch.sleep(wakes, Some(LONG), false, || unreachable!("only a thread that waits for dirt asks"));
    }
}

#[test]
fn work_that_comes_while_the_thread_looks_for_some_is_not_slept_through() {
    let watch = Watch::new();
    let seen = watch.wakes();
    watch.wake_for_work();
    watch.sleep(seen, Some(LONG), true, || false);
    let seen = watch.wakes();
    watch.sleep(seen, Some(LONG), true, || {
        watch.wake_for_work();
        false
    });
    assert!(time_of(|| watch.sleep(watch.wakes(), Some(20), true, || false)) >= Duration::from_millis(20));
}

#[test]
fn of_threads_that_leave_work_one_alone_wakes_the_sleeper() {
    let watch = Watch::new();
    watch.sleep(0, Some(LONG), true, || {
        watch.wake_for_work();
        assert!(!watch.asleep.load(Ordering::Relaxed), "the next would wake it, too");
        false
    });
}

#[test]
fn a_thread_that_waits_for_dirt_does_not_sleep_while_there_is_some() {
    let watch = Watch::new();
    watch.sleep(watch.wakes(), Some(LONG), true, || true);
}

#[test]
fn without_dirt_a_thread_sleeps_for_its_time() {
    let watch = Watch::new();
    let least = Duration::from_millis(20);
    assert!(time_of(|| watch.sleep(watch.wakes(), Some(20), true, || false)) >= least);
    assert!(time_of(|| watch.sleep(watch.wakes(), Some(20), false, || unreachable!())) >= least);
}

#[test]
fn dirt_wakes_only_a_thread_that_sleeps_until_there_is_some_and_once() {
    let watch = Watch::new();
    watch.wake_for_dirty();
    assert_eq!(watch.wakes(), 0, "no thread sleeps");
    watch.sleep(0, Some(LONG), true, || {
        watch.wake_for_dirty();
        watch.wake_for_dirty();
        assert_eq!(watch.wakes(), 1);
        false
    });
    watch.wake_for_dirty();
    assert_eq!(watch.wakes(), 1, "the thread is awake again");
}

#[test]
fn a_thread_waits_for_a_purge_until_one_ends_or_its_time_is_over() {
    let watch = Watch::new();
    assert!(time_of(|| watch.await_purge(watch.purges(), Millis(20))) >= Duration::from_millis(20));
    for n in 0..3 {
        let seen = watch.purges();
        assert_eq!(seen, n);
        watch.end_purge();
        watch.await_purge(seen, Millis(LONG));
    }
}
