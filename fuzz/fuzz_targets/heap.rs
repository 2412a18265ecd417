//! Any stream on the heap over the fake kernel, on every size of OS page, with small bins, which short streams fill and empty; one of
//! the kernel's calls may fail, once or for good.
//! Built without a sanitizer: it sees nothing inside the fake kernel's memory, which is one allocation, and takes long over each.
#![no_main]

#[allow(dead_code, reason = "the heap's own tests use the rest")]
#[path = "../../crates/freestone/src/testing.rs"]
mod testing;

use freestone_os::Errno;
use freestone_os::fake::Failure;
use freestone_testkit::ops::{Stream, play};
use heap::config::key;
use heap::{check, shared, thread};
use libfuzzer_sys::fuzz_target;
use testing::{OneHeap, World};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[pages, nth_call], rest)) = bytes.split_first_chunk() else { return };
    let world = World::new(4096 << (pages & 3));
    let bin_max = [&b"1"[..], b"2", b"5", b"4096"][usize::from(pages >> 6)];
    world.shared.settings().set(key::BIN_MAX, bin_max).expect("within the option's bounds");
    if nth_call > 0 {
        let errno = [Errno::NOMEM, Errno::AGAIN, Errno::INVAL][usize::from(pages >> 4 & 3).min(2)];
        let for_good = pages & 8 != 0;
        world.os().plan(Some(Failure { nth_call: u64::from(nth_call) - 1, errno, for_good }));
    }
    let Some(heap) = world.try_heap() else { return };
    let player = play(&Stream::from_bytes(0, rest), OneHeap { world: &world, heap }, 16);
    assert_eq!(player.err(), None);
    world.os().plan(None);
    // SAFETY: the heap is not used afterwards.
    unsafe { world.threads.death(heap) };
    assert_eq!(world.check(), Ok(()));
});
