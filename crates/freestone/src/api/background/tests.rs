use super::*;
use crate::config::key;
use core::ffi::c_void;
use core::ptr;
use std::boxed::Box;

/// A thread that has nothing to do.
extern "C" fn idle(_: *mut c_void) -> *mut c_void {
    ptr::null_mut()
}

fn shared_with(background: &str) -> Box<Shared<System>> {
    let shared = Box::new(Shared::new(System));
    shared.settings().set(key::BACKGROUND, background.as_bytes()).unwrap();
    shared
}

fn is_due(thread: &BackgroundThread) -> bool {
    thread.is_due.load(Ordering::Relaxed)
}

fn state(thread: &BackgroundThread) -> u32 {
    thread.state.load(Ordering::Relaxed)
}

#[test]
fn it_is_due_after_as_many_threads_as_the_option_says() {
    for (background, n_created, due) in
        [("auto", 1, false), ("auto", 2, true), ("on", 0, false), ("on", 1, true), ("off", 2, false)]
    {
        let (shared, thread) = (shared_with(background), BackgroundThread::new(idle));
        (0..n_created).for_each(|_| thread.thread_created(&shared));
        assert_eq!(is_due(&thread), due, "background={background}, {n_created} threads");
    }
}

#[test]
fn it_is_due_in_a_program_of_one_thread_if_samples_are_reported() {
    let (shared, thread) = (shared_with("auto"), BackgroundThread::new(idle));
    shared.settings().set(key::REPORT_MS, b"10").unwrap();
    thread.thread_created(&shared);
    assert!(is_due(&thread));
}

#[test]
fn samples_are_as_far_apart_as_the_option_says_whatever_else_the_thread_does() {
    for (ms, round_ms) in [(5000, 250), (300, 250), (50, 250), (50, 50), (1, 1)] {
        let (mut now_ms, mut sampled_ms) = (100_000, 0);
        assert_eq!(ms_to_sample(ms, sampled_ms, now_ms), 0, "the first one is at once");
        for _ in 0..20 {
            (sampled_ms, now_ms) = (now_ms, now_ms + u64::from(ms.min(round_ms)));
            while ms_to_sample(ms, sampled_ms, now_ms) > 0 {
                now_ms += u64::from(ms_to_sample(ms, sampled_ms, now_ms).min(round_ms));
            }
            assert_eq!(now_ms - sampled_ms, u64::from(ms), "every {ms} ms, in rounds of {round_ms} ms");
        }
    }
    assert_eq!(ms_to_sample(5000, 100_000, 104_991), 0, "a clock that is a little late");
    assert_eq!(ms_to_sample(5000, 100_000, 104_989), 11);
    assert_eq!(ms_to_sample(5000, 100_000, 90_000), 5000, "a clock that goes back");
}

#[test]
#[cfg_attr(miri, ignore = "starts a thread by the C library")]
fn it_is_started_once_and_joined_when_too_few_threads_are_left() {
    let (shared, thread) = (shared_with("auto"), BackgroundThread::new(idle));
    thread.start_if_due(&shared);
    assert_eq!(state(&thread), NONE);
    thread.thread_created(&shared);
    thread.thread_created(&shared);
    thread.start_if_due(&shared);
    assert_eq!((state(&thread), is_due(&thread)), (RUNNING, false));
    thread.start_if_due(&shared);
    thread.thread_gone(&shared);
    assert_eq!((state(&thread), is_due(&thread), thread.n_ends.load(Ordering::Relaxed)), (NONE, false, 1));
}

#[test]
#[cfg_attr(miri, ignore = "starts a thread by the C library")]
fn an_option_starts_and_ends_it() {
    let (shared, thread) = (shared_with("off"), BackgroundThread::new(idle));
    thread.thread_created(&shared);
    thread.start_if_due(&shared);
    assert_eq!(state(&thread), NONE);
    shared.settings().set(key::BACKGROUND, b"on").unwrap();
    thread.option_changed(&shared);
    thread.start_if_due(&shared);
    assert_eq!(state(&thread), RUNNING);
    shared.settings().set(key::BACKGROUND, b"off").unwrap();
    thread.option_changed(&shared);
    assert_eq!(state(&thread), NONE);
}

#[test]
#[cfg_attr(miri, ignore = "starts a thread by the C library")]
fn after_many_ends_in_one_period_it_stays_due_until_the_period_is_over() {
    let (shared, thread) = (shared_with("on"), BackgroundThread::new(idle));
    thread.thread_created(&shared);
    thread.n_ends.store(MAX_ENDS, Ordering::Relaxed);
    // A period that has just begun, however slow the machine is.
    thread.period_ms.store(u64::MAX, Ordering::Relaxed);
    thread.start_if_due(&shared);
    assert_eq!((state(&thread), is_due(&thread)), (NONE, true));
    thread.period_ms.store(0, Ordering::Relaxed);
    thread.start_if_due(&shared);
    assert_eq!((state(&thread), is_due(&thread)), (RUNNING, false));
    thread.end(&shared);
    // The end begins a new period.
    assert_eq!(thread.n_ends.load(Ordering::Relaxed), 1);
}

#[test]
fn samples_alone_do_not_keep_it_when_no_thread_has_a_heap() {
    let (shared, thread) = (shared_with("auto"), BackgroundThread::new(idle));
    shared.settings().set(key::REPORT_MS, b"10").unwrap();
    assert!(!thread.is_wanted(&shared));
    thread.thread_created(&shared);
    assert!(thread.is_wanted(&shared));
    thread.thread_gone(&shared);
    assert!(!thread.is_wanted(&shared));
}

#[test]
fn it_is_not_started_again_while_it_starts_runs_or_ends() {
    let (shared, thread) = (shared_with("on"), BackgroundThread::new(idle));
    thread.thread_created(&shared);
    for other in [STARTING, RUNNING, ENDING] {
        thread.state.store(other, Ordering::Relaxed);
        thread.is_due.store(true, Ordering::Relaxed);
        thread.start_if_due(&shared);
        assert_eq!(state(&thread), other);
    }
    thread.state.store(NONE, Ordering::Relaxed);
    thread.is_due.store(false, Ordering::Relaxed);
    thread.start(&shared);
    assert_eq!(state(&thread), NONE, "it was not due");
}

#[test]
#[cfg_attr(miri, ignore = "reads the kernel's clock")]
fn ends_are_counted_within_a_period_and_from_one_in_the_next() {
    let (shared, thread) = (shared_with("on"), BackgroundThread::new(idle));
    // A period that does not end while this test runs, however slow the machine is.
    thread.period_ms.store(u64::MAX, Ordering::Relaxed);
    for n_ends in 1..=MAX_ENDS {
        assert!(!thread.has_ended_too_often(&shared));
        thread.note_end(&shared);
        assert_eq!(thread.n_ends.load(Ordering::Relaxed), n_ends);
    }
    assert!(thread.has_ended_too_often(&shared));
    // One that was over long ago.
    thread.period_ms.store(0, Ordering::Relaxed);
    assert!(!thread.has_ended_too_often(&shared));
    thread.note_end(&shared);
    assert_eq!(thread.n_ends.load(Ordering::Relaxed), 1);
    assert!(thread.period_ms.load(Ordering::Relaxed) > 0);
}

#[test]
fn in_a_forked_child_it_does_not_exist_and_is_due_if_it_is_wanted() {
    for (background, has_heap, due) in [("on", true, true), ("on", false, false), ("auto", true, false)] {
        let (shared, thread) = (shared_with(background), BackgroundThread::new(idle));
        thread.n_threads.store(5, Ordering::Relaxed);
        thread.state.store(RUNNING, Ordering::Relaxed);
        thread.forked(&shared, has_heap);
        assert_eq!((state(&thread), is_due(&thread)), (NONE, due), "background={background}, has_heap={has_heap}");
    }
}

#[test]
fn it_is_due_in_a_program_of_one_thread_if_a_page_or_profiles_are_to_be_written() {
    let (with_page, with_profiles, without) = (shared_with("auto"), shared_with("auto"), shared_with("auto"));
    live::set_path(with_page.settings(), b"/tmp/page").unwrap();
    with_profiles.settings().set(key::HEAP_PROFILE, b"on").unwrap();
    with_profiles.settings().set(key::HEAP_PROFILE_MS, b"50").unwrap();
    for (shared, due) in [(with_page, true), (with_profiles, true), (without, false)] {
        let thread = BackgroundThread::new(idle);
        thread.thread_created(&shared);
        assert_eq!(is_due(&thread), due);
    }
}

#[test]
fn there_are_states_of_a_page_if_it_has_a_path_and_the_process_is_in_no_sandbox() {
    let settings = Settings::new();
    assert_eq!(live_ms(&settings), None);
    live::set_path(&settings, b"/tmp/page").unwrap();
    assert_eq!(live_ms(&settings), Some(live::INTERVAL_MS));
    settings.set(key::SANDBOX, b"on").unwrap();
    assert_eq!(live_ms(&settings), None);
}
