#![allow(unsafe_code)]

use super::*;
#[cfg(target_os = "linux")]
use freestone_base::lock::Forker;
#[cfg(target_os = "linux")]
use std::boxed::Box;
use std::format;
use std::string::{String, ToString};

fn path(settings: &Settings) -> Option<String> {
    path_of(settings).map(|path| c_path(&path).unwrap().to_str().unwrap().to_string())
}

#[test]
fn the_path_has_the_processes_number_wherever_it_is_asked_for() {
    let (settings, own) = (Settings::new(), process::id());
    assert_eq!((path(&settings), has_number(&settings)), (None, false));
    set_path(&settings, b"/run/%p/page-%p.%").unwrap();
    assert_eq!(path(&settings), Some(format!("/run/{own}/page-{own}.%")));
    assert!(has_number(&settings) && !is_default(&settings));
    set_path(&settings, b"/\xff%p").unwrap();
    assert_eq!(path_of(&settings).unwrap().as_bytes(), [b"/\xff", format!("{own}\0").as_bytes()].concat());
    set_path(&settings, b"/run/page").unwrap();
    assert_eq!((path(&settings).as_deref(), has_number(&settings)), (Some("/run/page"), false));
}

#[test]
fn on_means_a_name_by_number_and_off_none() {
    let settings = Settings::new();
    set_path(&settings, b"ON").unwrap();
    let folder = std::env::var("XDG_RUNTIME_DIR").unwrap_or("/tmp".into());
    assert_eq!(path(&settings), Some(format!("{folder}/freestone-{}.live", process::id())));
    assert!(is_default(&settings) && has_number(&settings));
    set_path(&settings, b"off").unwrap();
    assert_eq!(path(&settings), None);
}

#[test]
fn a_path_that_the_number_makes_too_long_is_none() {
    let settings = Settings::new();
    let long: String = core::iter::repeat_n("%p", 500).collect();
    set_path(&settings, long.as_bytes()).unwrap();
    let expanded = path_of(&settings).unwrap();
    assert_eq!(c_path(&expanded).is_some(), format!("{}", process::id()).len() <= 2);
    assert_eq!(set_path(&settings, &[b'x'; 2000]), Err(Mistake::OutOfRange));
}

#[test]
fn a_page_at_the_default_path_comes_an_interval_later_and_in_a_sandbox_there_is_none() {
    let (settings, now_ms) = (Settings::new(), 5000);
    let begun = || {
        let page = LivePage::new();
        page.begin(&settings, || now_ms);
        (page.is_on(), page.due_ms.load(Ordering::Relaxed))
    };
    assert!(!begun().0);
    set_path(&settings, b"/run/page").unwrap();
    assert_eq!(begun(), (true, now_ms));
    set_path(&settings, b"on").unwrap();
    assert_eq!(begun(), (true, now_ms + u64::from(INTERVAL_MS)));
    settings.set(crate::config::key::SANDBOX, b"on").unwrap();
    assert!(!begun().0);
}

/// As if the process had ended between a thread's look at the page and its call.
#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn a_thread_that_comes_after_the_end_leaves_no_file() {
    let (shared, threads) = (Box::new(Shared::new(System)), Threads::new());
    let file = std::env::temp_dir().join(format!("freestone-late-{}", process::id()));
    set_path(shared.settings(), file.to_str().unwrap().as_bytes()).unwrap();
    let page = LivePage::new();
    page.begin(shared.settings(), || 0);
    page.end(&shared, &threads);
    page.update(&shared, &threads);
    assert!(!file.exists());
    let page = LivePage::new();
    page.begin(shared.settings(), || 0);
    page.update(&shared, &threads);
    assert!(file.exists());
    page.end(&shared, &threads);
    assert!(!file.exists());
}

/// As on a busy machine, or one with a slow disk. Were the 30 ms counted, the next state would be due 1.5 s later.
#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn a_state_that_had_to_wait_is_followed_by_the_next_as_soon_as_any_other() {
    let (shared, threads) = (Box::new(Shared::new(System)), Threads::new());
    let file = std::env::temp_dir().join(format!("freestone-waited-{}", process::id()));
    set_path(shared.settings(), file.to_str().unwrap().as_bytes()).unwrap();
    let page = LivePage::new();
    page.begin(shared.settings(), || 0);
    threads.lock_for_fork();
    let due_ms = std::thread::scope(|scope| {
        let late = scope.spawn(|| page.update_if_due(&shared, &threads));
        std::thread::sleep(core::time::Duration::from_millis(30));
        assert!(!late.is_finished());
        // SAFETY: this thread took the locks above.
        threads.unlock_after_fork(unsafe { Forker::new() });
        late.join().unwrap();
        page.due_ms.load(Ordering::Relaxed)
    });
    let now_ms = shared.os().now_ms();
    page.end(&shared, &threads);
    assert!(due_ms <= now_ms + u64::from(INTERVAL_MS), "due {} ms from now", due_ms - now_ms);
}

/// The thread that was writing does not exist there.
#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn a_child_writes_states_though_a_thread_of_its_parent_was_writing_one() {
    let (shared, threads) = (Box::new(Shared::new(System)), Threads::new());
    let folder = std::env::temp_dir();
    set_path(shared.settings(), folder.join("freestone-forked-%p").to_str().unwrap().as_bytes()).unwrap();
    let page = LivePage::new();
    page.begin(shared.settings(), || 0);
    page.is_writing.store(true, Ordering::Relaxed);
    page.forked(&shared);
    page.update(&shared, &threads);
    assert!(folder.join(format!("freestone-forked-{}", process::id())).exists());
    page.end(&shared, &threads);
}
