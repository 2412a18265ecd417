#![allow(unsafe_code)]

extern crate std;

use super::*;
use std::vec::Vec;

#[repr(align(16))]
struct Memory([MaybeUninit<u8>; 4096]);

#[test]
fn each_shard_is_visited_once_and_has_an_equal_part() {
    let mut memory = Memory([MaybeUninit::uninit(); 4096]);
    let heap = Sharded::<4>::new(&mut memory.0).unwrap();
    let mut parts = Vec::new();
    heap.each_shard(|shard| parts.push(shard.region_bytes()));
    assert_eq!(parts, [1024; 4]);
}

#[test]
fn all_shards_serve_one_thread_and_each_block_returns_to_its_shard() {
    let mut memory = Memory([MaybeUninit::uninit(); 4096]);
    let heap = Sharded::<4>::new(&mut memory.0).unwrap();
    let blocks: Vec<_> = core::iter::from_fn(|| heap.allocate(900, 16).ok()).collect();
    assert_eq!((blocks.len(), heap.allocate(900, 16).is_err()), (4, true));
    heap.each_shard(|shard| assert_eq!(shard.stats().used_blocks, 1));
    for block in blocks {
        // SAFETY: freed once, and not used afterwards.
        unsafe { heap.deallocate(block).unwrap() };
    }
    heap.each_shard(|shard| assert_eq!((shard.stats().used_blocks, shard.check()), (0, Ok(()))));
}

#[test]
fn a_block_that_outgrows_its_shard_moves_to_another_with_its_contents() {
    let mut memory = Memory([MaybeUninit::uninit(); 4096]);
    let heap = Sharded::<4>::new(&mut memory.0).unwrap();
    let [first, wall] = [40, 40].map(|bytes| heap.allocate(bytes, 16).unwrap());
    // SAFETY: the block has 40 bytes; the old pointer is not used after it is reallocated.
    unsafe { first.write_bytes(7, 40) };
    // SAFETY: as above.
    let moved = unsafe { heap.reallocate(first, 950, 16) }.unwrap();
    // SAFETY: as above.
    assert!((0..40).all(|at| unsafe { moved.as_ptr().wrapping_add(at).read() } == 7));
    // SAFETY: as above.
    unsafe { heap.deallocate(moved) }.unwrap();
    // SAFETY: as above.
    unsafe { heap.deallocate(wall) }.unwrap();
    heap.each_shard(|shard| assert_eq!(shard.stats().used_blocks, 0));
}

#[test]
fn addresses_in_front_of_and_behind_the_shards_are_foreign_and_too_little_memory_is_refused() {
    let mut memory = Memory([MaybeUninit::uninit(); 4096]);
    let start = NonNull::from(&mut memory.0).cast::<u8>();
    let heap = Sharded::<4>::new(&mut memory.0).unwrap();
    for address in [start.addr().get() - 16, start.addr().get() + 4096] {
        let outside = start.with_addr(core::num::NonZeroUsize::new(address).unwrap());
        // SAFETY: refused.
        assert_eq!(unsafe { heap.deallocate(outside) }, Err(Error::Foreign { address }));
    }
    let mut memory = Memory([MaybeUninit::uninit(); 4096]);
    let (few, _) = memory.0.split_at_mut(4 * 48 - 16);
    assert_eq!(Sharded::<4>::new(few).err(), Some(Error::RegionTooSmall { bytes: 176, least: 4 * 48 }));
}

#[test]
fn who_finds_every_shard_locked_waits_for_one() {
    let mut memory = Memory([MaybeUninit::uninit(); 4096]);
    let heap = Sharded::<1>::new(&mut memory.0).unwrap();
    let (is_locked, may_go_on) = (std::sync::Barrier::new(2), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            heap.each_shard(|_| {
                is_locked.wait();
                while !may_go_on.load(std::sync::atomic::Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                std::thread::sleep(core::time::Duration::from_millis(20));
            });
        });
        is_locked.wait();
        may_go_on.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(heap.allocate(100, 16).is_ok());
    });
}
