extern crate std;
use super::*;
use core::ffi::c_void;
use core::ptr;
use std::string::String;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, PoisonError};
use std::{fs, thread};

/// The threads of the tests share counters: one test at a time.
static ONE_TEST: Mutex<()> = Mutex::new(());
static N_RUNS: AtomicUsize = AtomicUsize::new(0);
static MAY_END: AtomicBool = AtomicBool::new(true);
static STATUS: Mutex<String> = Mutex::new(String::new());

/// Records that it ran and its settings in the kernel, and ends when the test allows it.
extern "C" fn run(_: *mut c_void) -> *mut c_void {
    set_name(c"borrowed");
    *STATUS.lock().unwrap() = fs::read_to_string("/proc/thread-self/status").unwrap();
    while !MAY_END.load(Ordering::Acquire) {
        thread::yield_now();
    }
    N_RUNS.fetch_add(1, Ordering::Release);
    ptr::null_mut()
}

const STACK_BYTES: usize = 256 << 10;

#[test]
#[cfg_attr(miri, ignore = "starts a thread by the C library")]
fn a_thread_has_ended_when_it_is_joined_and_can_be_started_again() {
    let _one = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Joinable::new();
    for _ in 0..2 {
        let before = N_RUNS.load(Ordering::Acquire);
        assert!(place.spawn(run, STACK_BYTES));
        place.join();
        assert_eq!(N_RUNS.load(Ordering::Acquire), before + 1);
        place.join();
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts a thread by the C library")]
fn there_is_room_for_one_thread_at_a_time() {
    let _one = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Joinable::new();
    MAY_END.store(false, Ordering::Release);
    assert!(place.spawn(run, STACK_BYTES));
    assert!(!place.spawn(run, STACK_BYTES));
    MAY_END.store(true, Ordering::Release);
    place.join();
}

#[test]
#[cfg_attr(miri, ignore = "starts a thread by the C library")]
fn the_thread_blocks_every_signal_and_the_one_that_starts_it_blocks_what_it_did() {
    let _one = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    let blocked = |status: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    let own = || blocked(&fs::read_to_string("/proc/thread-self/status").unwrap());
    let (before, place) = (own(), Joinable::new());
    assert!(place.spawn(run, STACK_BYTES));
    place.join();
    let status = STATUS.lock().unwrap();
    assert!(status.starts_with("Name:\tborrowed\n"), "{status}");
    // All but the signals that the kernel lets no thread block, and those that the C library keeps for itself.
    let (kill, stop) = (1 << (libc::SIGKILL - 1), 1 << (libc::SIGSTOP - 1));
    let for_the_c_library: u64 = 0b111 << 31;
    assert_eq!(blocked(&status) | kill | stop | for_the_c_library, u64::MAX);
    assert_eq!(own(), before);
}

#[test]
fn without_a_thread_nothing_is_joined() {
    let place = Joinable::default();
    place.join();
    place.forget();
    assert_eq!(place.state.load(Ordering::Relaxed), NONE);
}
