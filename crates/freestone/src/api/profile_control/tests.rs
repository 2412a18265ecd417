use super::*;
use crate::config::key;
use std::boxed::Box;
use std::hint::spin_loop;
use std::path::PathBuf;
use std::thread;

extern "C" fn no_handler(_: c_int) {}

/// When the page is looked at, and when a profile is written, of a control that begins at 5000 ms.
fn begun(options: &[(usize, &str)]) -> (bool, u64, u64) {
    let (settings, control) = (Settings::new(), ProfileControl::new());
    options.iter().for_each(|(option, value)| settings.set(*option, value.as_bytes()).unwrap());
    control.begin(&settings, no_handler, 5000);
    (control.is_on(), control.look_ms.load(Ordering::Relaxed), control.write_ms.load(Ordering::Relaxed))
}

#[test]
fn the_page_is_looked_at_and_profiles_are_written_an_interval_after_the_start() {
    assert_eq!(begun(&[]), (false, NEVER, NEVER));
    assert_eq!(begun(&[(key::HEAP_PROFILE, "on")]), (false, NEVER, NEVER));
    assert_eq!(begun(&[(key::HEAP_PROFILE, "ready")]), (true, 5100, NEVER));
    assert_eq!(begun(&[(key::HEAP_PROFILE, "on"), (key::HEAP_PROFILE_MS, "70")]), (true, NEVER, 5070));
}

#[test]
fn a_moment_comes_once_in_an_interval() {
    let moment = AtomicU64::new(300);
    assert!(!has_come(&moment, 299, 50));
    assert!(has_come(&moment, 300, 50));
    assert_eq!(moment.load(Ordering::Relaxed), 350);
    assert!(!has_come(&moment, 349, 50) && has_come(&moment, 1000, 50));
}

#[test]
fn a_forked_child_looks_for_its_own_page_an_interval_later_if_its_parent_did() {
    for (before, after) in [(7, 5100), (NEVER, NEVER)] {
        let control = ProfileControl::new();
        control.look_ms.store(before, Ordering::Relaxed);
        control.is_serving.store(true, Ordering::Relaxed);
        control.forked(5000);
        assert_eq!(control.look_ms.load(Ordering::Relaxed), after);
        assert!(!control.is_serving.load(Ordering::Relaxed));
    }
}

#[test]
fn the_thread_is_needed_for_what_is_due_while_the_program_makes_no_calls() {
    let settings = Settings::new();
    assert_eq!((round_ms(&settings), needs_thread(&settings)), (None, false));
    settings.set(key::HEAP_PROFILE, b"on").unwrap();
    settings.set(key::HEAP_PROFILE_SIGNAL, b"usr1").unwrap();
    assert_eq!((round_ms(&settings), needs_thread(&settings)), (None, true));
    settings.set(key::HEAP_PROFILE, b"ready").unwrap();
    assert_eq!(round_ms(&settings), Some(PAGE_MS));
    settings.set(key::HEAP_PROFILE_MS, b"30").unwrap();
    assert_eq!((round_ms(&settings), needs_thread(&settings)), (Some(30), true));
}

/// Each round ends a little later after the moment at which another thread begins to make the page.
#[test]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn a_process_that_ends_while_a_thread_makes_the_page_leaves_no_file() {
    let (shared, files) = (Box::new(Shared::new(System)), ProfileFiles::new());
    let file = PathBuf::from(std::format!("/tmp/freestone-{}.profile", process::id()));
    for round in 0..300 {
        let (control, is_begun) = (ProfileControl::new(), AtomicBool::new(false));
        control.is_on.store(true, Ordering::Relaxed);
        control.look_ms.store(0, Ordering::Relaxed);
        thread::scope(|scope| {
            scope.spawn(|| {
                is_begun.store(true, Ordering::Relaxed);
                control.serve(&shared, &files, || false);
            });
            while !is_begun.load(Ordering::Relaxed) {
                spin_loop();
            }
            (0..round * 30).for_each(|_| spin_loop());
            control.end();
        });
        assert!(!file.exists(), "round {round}");
        assert_eq!(control.look_ms.load(Ordering::Relaxed), NEVER, "round {round}");
    }
}
