extern crate std;
use super::*;
use core::cell::Cell;
use core::ffi::c_void;
use core::{hint, ptr};
use freestone_testkit::again;
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

const STACK_BYTES: usize = 1 << 20;

/// The C library gives a thread the stack of one that has ended, if that is at most four times as long as it has to be: that of the other tests is longer.
const SHORT_STACK_BYTES: usize = STACK_BYTES / 8;

#[test]
#[cfg_attr(miri, ignore = "starts a thread by the C library")]
fn a_thread_has_ended_when_it_is_joined_and_can_be_started_again() {
    let _one = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Joinable::new();
    for _ in 0..2 {
        let before = N_RUNS.load(Ordering::Acquire);
        assert_eq!(place.spawn(run, STACK_BYTES), Ok(()));
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
    assert_eq!(place.spawn(run, STACK_BYTES), Ok(()));
    assert_eq!(place.spawn(run, STACK_BYTES), Err(Errno::EXIST));
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
    assert_eq!(place.spawn(run, STACK_BYTES), Ok(()));
    place.join();
    let status = STATUS.lock().unwrap();
    assert!(status.starts_with("Name:\tborrowed\n"), "{status}");
    // All but the signals that the kernel lets no thread block, and those that the C library keeps for itself.
    let (kill, stop) = (1 << (libc::SIGKILL - 1), 1 << (libc::SIGSTOP - 1));
    let for_the_c_library: u64 = 0b111 << 31;
    // An emulator keeps some more.
    if !again::is_emulated() {
        assert_eq!(blocked(&status) | kill | stop | for_the_c_library, u64::MAX);
    }
    assert_eq!(own(), before);
}

/// The C library takes the memory of these from the stack of each thread.
const LOCAL_BYTES: usize = 100 << 10;

std::thread_local! {
    static LARGE: Cell<[u8; LOCAL_BYTES]> = const { Cell::new([0; LOCAL_BYTES]) };
}

/// Writes to most of a short stack.
extern "C" fn use_stack(_: *mut c_void) -> *mut c_void {
    hint::black_box(&mut [1_u8; SHORT_STACK_BYTES - (24 << 10)]);
    LARGE.with(|large| hint::black_box(large.as_ptr()));
    N_RUNS.fetch_add(1, Ordering::Release);
    ptr::null_mut()
}

#[test]
#[cfg_attr(miri, ignore = "starts a thread by the C library")]
fn the_stack_is_as_long_as_asked_for_beside_thread_local_storage() {
    let _one = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    let (before, place) = (N_RUNS.load(Ordering::Acquire), Joinable::new());
    count_thread_locals();
    assert_eq!(place.spawn(use_stack, SHORT_STACK_BYTES), Ok(()));
    place.join();
    assert_eq!(N_RUNS.load(Ordering::Acquire), before + 1);
}

#[test]
fn without_a_thread_nothing_is_joined() {
    let place = Joinable::default();
    place.join();
    place.forget();
    assert_eq!(place.state.load(Ordering::Relaxed), NONE);
}
