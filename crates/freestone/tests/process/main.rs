//! The process's one allocator over the real kernel: its options, report, threads, forks and shortages.
//!
//! Each test starts this program again for itself alone, with options in the environment, because there is one allocator in a process and it reads
//! its options once.
#![allow(unsafe_code)]
//! # Safety
//! The tests call the C library as its manual says, and use no block after freeing it.
#![cfg(all(target_os = "linux", not(miri)))]

mod access;
mod environment;
mod faults;
mod heap_profile;
mod lifetimes;
mod live_page;
mod memory;
mod owners;
mod recording;

use freestone::Freestone;
use freestone_testkit::again;
use std::process;
use std::time::Duration;
use std::{any, env, fs, thread};

#[global_allocator]
static ALLOCATOR: Freestone = Freestone;

const MIB: usize = 1 << 20;

/// Set in a process that runs one test.
const ALONE: &str = "PROCESS_TEST_ALONE";

/// Runs `body`, a closure that is all of a test, in a process of its own, with `options` in its environment. Returns what it wrote to standard error;
/// nothing in that process itself.
fn alone<F: FnOnce()>(options: &[(&str, &str)], body: F) -> Option<String> {
    if env::var_os(ALONE).is_some() {
        // SAFETY: the signal ends the process, if the test hangs.
        unsafe { libc::alarm(100) };
        body();
        return None;
    }
    let mut again = again::this_program();
    again.args([test_of(&body), "--exact", "--nocapture", "--test-threads", "1"]).env(ALONE, "1");
    again.envs(options.iter().map(|(name, value)| (format!("FREESTONE_{name}"), value)));
    // A folder of its own for files with the process's number: a process of the same number that was killed has left its own in the other. What has no
    // other name is written there, too.
    let folder =
        env::temp_dir().join(format!("freestone-alone-{}-{}", process::id(), test_of(&body).replace(':', "-")));
    fs::create_dir_all(&folder).expect("a folder for temporary files can be written");
    let again = again.env("XDG_RUNTIME_DIR", &folder).current_dir(&folder);
    let output = again.output().expect("a test program can be started");
    fs::remove_dir_all(&folder).expect("a folder of this test");
    let [said, result] = [output.stderr, output.stdout].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && result.contains(" 1 passed"), "{result}\n{said}");
    Some(said)
}

/// The name of the test that a closure is in.
fn test_of<F>(_: &F) -> &'static str {
    let path = any::type_name::<F>().trim_end_matches("::{{closure}}");
    path.split_once("::").map_or(path, |(_, test)| test)
}

/// Waits until something is so that does not depend on this thread's calls.
fn await_that(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        thread::sleep(Duration::from_millis(1));
    }
}
