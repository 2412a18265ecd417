//! The option `live`: the page of statistics in a file, read as `freestone top` reads it.
use crate::lifetimes::in_child;
use crate::{ALLOCATOR, MIB, alone, await_that};
use freestone::door::{self, live};
use std::ffi::CString;
use std::hint::black_box;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// A path in the folder of temporary files that no other test and no other process has.
fn path(name: &str) -> PathBuf {
    env::temp_dir().join(format!("freestone-{name}-{}", process::id()))
}

/// The path that the option has in this process.
fn path_of_option() -> PathBuf {
    let option = env::var("FREESTONE_LIVE").expect("the test sets it");
    option.replace("%p", &process::id().to_string()).into()
}

/// The last state in a page, if there is one.
fn state(path: &Path) -> Option<live::LiveState> {
    let path = CString::new(path.to_str().expect("a path in UTF-8")).expect("no zero byte");
    live::read(live::open(&path).ok()?).ok()
}

/// Allocates on slow paths until a page has a state that is newer than the one with this number.
fn newer_state(path: &Path, number: u64) -> live::LiveState {
    let has_it = || {
        use_slow_path();
        state(path).is_some_and(|state| state.number > number)
    };
    await_that(has_it);
    state(path).expect("there was one")
}

fn use_slow_path() {
    for bytes in [200_000, 300_000] {
        drop(black_box(vec![1_u8; black_box(bytes)]));
    }
}

/// Milliseconds of the clock that states have.
fn now_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for the time.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) }, 0);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// Writes a page without a state, of a process of this number.
fn leave_page(path: &Path, process: u64) {
    let mut words = b"freeston".to_vec();
    words.extend([2, process].iter().flat_map(|word: &u64| word.to_ne_bytes()));
    words.resize(live::PAGE_WORDS * 8, 0);
    fs::write(path, words).expect("a folder for temporary files can be written");
}

#[test]
fn the_page_has_what_is_live_and_goes_with_the_end_of_the_report() {
    let path = path("live");
    let said = alone(&[("LIVE", path.to_str().expect("a path in UTF-8")), ("BACKGROUND", "off")], || {
        let path = path_of_option();
        let (begun_ms, first) = (now_ms(), newer_state(&path, 0));
        assert_eq!((first.process, first.interval_ms), (process::id(), 100));
        let block = vec![1_u8; 48 * MIB];
        let second = newer_state(&path, state(&path).expect("there is one").number);
        assert!((48 << 20..64 << 20).contains(&second.stats.live), "{}", second.stats.live);
        assert!(!second.heaps().is_empty() && second.at_ms > first.at_ms);
        drop(block);
        let last = newer_state(&path, second.number + 3);
        assert!(last.stats.live < 16 << 20, "{}", last.stats.live);
        // One at once, and not more than one in an interval, however many calls there are.
        let most = 2 + (now_ms() - begun_ms + 1000) / 100;
        assert!(last.number <= most, "{} states, at most {most} are due", last.number);
        assert_eq!(fs::metadata(&path).expect("the page").mode() & 0o777, 0o600);
        ALLOCATOR.report_exit();
    });
    if let Some(said) = said {
        assert_eq!(said, "");
        assert!(!path.exists(), "the page is still there");
    }
}

#[test]
fn a_process_that_ends_writes_a_last_state() {
    let path = path("live-last");
    alone(&[("LIVE", path.to_str().expect("a path in UTF-8")), ("BACKGROUND", "off")], || {
        let path = path_of_option();
        newer_state(&path, 0);
        let name = CString::new(path.to_str().expect("a path in UTF-8")).expect("no zero byte");
        let words = live::open(&name).expect("the page");
        let block = vec![1_u8; 77 * MIB];
        ALLOCATOR.report_exit();
        assert!(!path.exists());
        assert!(live::read(words).is_ok_and(|state| state.stats.live >= 77 << 20), "the last state is an old one");
        drop(block);
        use_slow_path();
        assert!(!path.exists());
    });
}

#[test]
fn a_process_that_ends_before_its_first_state_makes_no_page_after_that() {
    alone(&[("LIVE", "on"), ("BACKGROUND", "off")], || {
        ALLOCATOR.report_exit();
        let until_ms = now_ms() + 250;
        while now_ms() < until_ms {
            use_slow_path();
        }
        let folder = env::var("XDG_RUNTIME_DIR").expect("the test sets it");
        assert_eq!(fs::read_dir(folder).expect("the folder of this test").count(), 0);
    });
}

#[test]
fn a_forked_child_has_a_page_of_its_own_an_interval_later_where_the_path_has_its_number() {
    let option = env::temp_dir().join("freestone-process-fork-%p.live");
    alone(&[("LIVE", option.to_str().expect("a path in UTF-8")), ("BACKGROUND", "off")], || {
        let parents = path_of_option();
        newer_state(&parents, 0);
        // The parent's next state is due before the child's first.
        let due_ms = now_ms() + 120;
        await_that(|| now_ms() > due_ms);
        let (before_ms, parent) = (now_ms(), process::id());
        let status = in_child(|| {
            let own = path_of_option();
            assert_ne!(own, parents);
            let first = newer_state(&own, 0);
            assert!(first.process == process::id() && first.number >= 1);
            assert!(first.at_ms >= before_ms + 100, "a state {} ms after the fork", first.at_ms - before_ms);
            assert!(state(&parents).is_some_and(|state| state.process == parent));
            ALLOCATOR.report_exit();
            assert!(!own.exists() && parents.exists());
        });
        assert_eq!(status, 0);
        newer_state(&parents, state(&parents).expect("still there").number);
        fs::remove_file(parents).expect("a page of this test");
    });
}

#[test]
fn a_forked_child_leaves_its_parents_page_alone_where_both_have_one_path() {
    let path = path("live-shared");
    alone(&[("LIVE", path.to_str().expect("a path in UTF-8")), ("BACKGROUND", "off")], || {
        let path = path_of_option();
        let (before, parent) = (newer_state(&path, 0), process::id());
        let status = in_child(|| {
            let until_ms = now_ms() + 250;
            while now_ms() < until_ms {
                use_slow_path();
            }
            ALLOCATOR.report_exit();
            let now = state(&path).expect("the parent's page is still there");
            assert_eq!((now.process, now.number), (parent, before.number));
        });
        assert_eq!(status, 0);
        fs::remove_file(path).expect("a page of this test");
    });
}

#[test]
fn a_page_of_a_process_that_is_gone_is_replaced_and_one_of_a_process_that_lives_is_not() {
    let path = path("live-leftover");
    for is_gone in [true, false] {
        if env::var_os(crate::ALONE).is_none() {
            leave_page(&path, if is_gone { i32::MAX as u64 } else { u64::from(process::id()) });
        }
        let said = alone(&[("LIVE", path.to_str().expect("a path in UTF-8")), ("BACKGROUND", "off")], || {
            let path = path_of_option();
            let name = CString::new(path.to_str().expect("a path in UTF-8")).expect("no zero byte");
            drop(black_box(vec![1_u8; 300_000]));
            let has_one = live::open(&name).map(live::process_of);
            match has_one.expect("there is a page").expect("it is a page") {
                own if own == process::id() as i32 => {
                    newer_state(&path, 0);
                    ALLOCATOR.report_exit();
                }
                _ => assert!(state(&path).is_none(), "another process's page was written"),
            }
        });
        let Some(said) = said else { return };
        assert_eq!((said.as_str(), path.exists()), ("", !is_gone));
    }
    fs::remove_file(&path).expect("a file of this test");
}

#[test]
fn a_file_in_the_way_stays_and_is_reported_once() {
    let path = path("live-in-the-way");
    if env::var_os(crate::ALONE).is_none() {
        fs::write(&path, "mine").expect("a folder for temporary files can be written");
    }
    let longest = format!("/nowhere{}", "/at/all".repeat(145));
    for (path, why) in [
        (path.as_path(), "error 17 (there is such a file)"),
        (Path::new("/nowhere/at/all/page"), "error 2 (no such file or folder)"),
        (Path::new(&longest), "error 2 (no such file or folder); set FREESTONE_LIVE to another path\n"),
    ] {
        let said = alone(&[("LIVE", path.to_str().expect("a path in UTF-8")), ("BACKGROUND", "off")], || {
            let until_ms = now_ms() + 250;
            while now_ms() < until_ms {
                use_slow_path();
            }
        });
        let Some(said) = said else { return };
        let report = format!("option live: cannot create {}: {why}", path.display());
        assert_eq!((said.matches("option live").count(), said.matches(&report).count()), (1, 1), "{said}");
    }
    assert_eq!(fs::read(&path).expect("still there"), b"mine");
    fs::remove_file(&path).expect("a file of this test");
}

#[test]
fn a_sandboxed_process_has_no_page() {
    let path = path("live-sandbox");
    let options = [("LIVE", path.to_str().expect("a path in UTF-8")), ("SANDBOX", "on")];
    alone(&options, || {
        use_slow_path();
        assert!(!path_of_option().exists());
    });
}

#[test]
fn the_background_thread_writes_states_while_the_program_makes_no_calls() {
    let path = path("live-idle");
    alone(&[("LIVE", path.to_str().expect("a path in UTF-8")), ("BACKGROUND", "on")], || {
        let path = path_of_option();
        // A thread that frees memory starts the background thread.
        drop(black_box(vec![1_u8; 20 * MIB]));
        let number = newer_state(&path, 0).number;
        await_that(|| state(&path).is_some_and(|state| state.number > number + 2));
        // SAFETY: null is allowed.
        unsafe { door::free(std::ptr::null_mut()) };
        fs::remove_file(path).expect("a page of this test");
    });
}
