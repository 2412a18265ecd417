#![allow(unsafe_code)]
use super::*;
use crate::api::alloc::allocate;
use crate::api::free;
use std::thread;

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn a_block_that_a_starting_thread_freed_is_handed_out_again_once_a_thread_has_a_heap() {
    const SIZE: usize = 3000;
    let block = allocate(SIZE);
    // SAFETY: the block is live, and not used again.
    unsafe { PROCESS.freed_early.keep(&PROCESS.shared, block) };
    // The heap of the new thread frees the block, which goes back to this thread's heap when the new thread ends, if not before.
    thread::spawn(|| assert!(!allocate(SIZE).is_null())).join().unwrap();
    let mut taken = std::vec::Vec::new();
    while taken.last() != Some(&block) {
        assert!(taken.len() < 100_000, "the block is lost");
        taken.push(allocate(SIZE));
    }
    for block in taken {
        // SAFETY: the block is live, and not used again.
        unsafe { free::free(block) };
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn an_address_outside_the_heap_is_not_kept() {
    let mut foreign = [7_u64; 2];
    assert!(!allocate(1).is_null());
    // SAFETY: the address is not one of the allocator's.
    unsafe { PROCESS.freed_early.keep(&PROCESS.shared, (&raw mut foreign).cast()) };
    assert_eq!(foreign, [7; 2]);
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn a_thread_that_is_starting_has_no_heap_and_gets_one_later() {
    thread::spawn(|| {
        let before = current::begin_start();
        assert!(with_heap(|_| ()).is_none() && allocate(100).is_null());
        current::return_to(before);
        assert!(with_heap(|_| ()).is_some() && !allocate(100).is_null());
    })
    .join()
    .unwrap();
}

/// As if a signal handler had got the thread its heap just before.
#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn a_thread_that_starts_although_it_has_a_heap_keeps_it() {
    thread::spawn(|| {
        let heap_of_this_thread = || with_heap(|own| ptr::from_ref(own.heap()).addr()).unwrap();
        let heap = heap_of_this_thread();
        let before = current::begin_start();
        assert!(before.has_heap() && current::is_starting() && allocate(100).is_null());
        current::return_to(before);
        assert_eq!(heap_of_this_thread(), heap);
    })
    .join()
    .unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn a_thread_keeps_its_heap_and_two_threads_have_two() {
    let heap_of_this_thread = || with_heap(|own| ptr::from_ref(own.heap()).addr()).unwrap();
    let first = heap_of_this_thread();
    assert_eq!(heap_of_this_thread(), first);
    assert_ne!(thread::spawn(heap_of_this_thread).join().unwrap(), first);
}
