//! Overwritten bookkeeping is reported and never followed; blocks at the edges of what was carved count right.
#![allow(unsafe_code, reason = "damage is done on purpose")]

mod subject;

use core::alloc::Layout;
use freestone_pool::{Error, Fallback, FixedPool, Shape, SharedPool};
use std::ptr::NonNull;
use subject::Memory;

const COUNT: usize = 70;

const SHAPE: Shape = match Shape::new(48, COUNT) {
    Ok(shape) => shape,
    Err(_) => panic!("no such pool"),
};

/// A fixed pool of which every block was carved and blocks 5 and 66, of two groups, are free; and the second group's link to the first.
fn two_groups(memory: &Memory) -> (FixedPool<'_>, Vec<NonNull<u8>>, NonNull<usize>) {
    let mut pool = memory.fixed(SHAPE);
    let blocks: Vec<_> = (0..COUNT).map(|_| pool.allocate().unwrap()).collect();
    for index in [5, 66] {
        // SAFETY: given back once.
        unsafe { pool.deallocate(blocks[index]) }.unwrap();
    }
    // SAFETY: behind the blocks lie the groups, 16 bytes each, of which the link is the second half.
    let link = unsafe { memory.start.byte_add(COUNT * SHAPE.spacing() + 24) };
    (pool, blocks, link.cast())
}

#[test]
fn a_list_that_ends_too_soon_is_found() {
    let memory = Memory::new(SHAPE.region_bytes(), 0xA5);
    let (pool, blocks, link) = two_groups(&memory);
    assert_eq!(pool.check(), Ok(()));
    // SAFETY: inside the memory; the pool is not at work.
    unsafe { link.write(usize::MAX) };
    assert_eq!(pool.check(), Err(Error::Damaged { block: blocks[0].addr().get() }));
}

#[test]
fn a_list_that_leads_out_of_the_groups_is_reported_as_damage_not_exhaustion() {
    let memory = Memory::new(SHAPE.region_bytes(), 0xA5);
    let (mut pool, blocks, link) = two_groups(&memory);
    // SAFETY: as above.
    unsafe { link.write(9) };
    assert_eq!(pool.allocate(), Ok(blocks[66]));
    let damaged = Err(Error::Damaged { block: blocks[0].addr().get() });
    assert_eq!((pool.allocate(), pool.allocate_zeroed()), (damaged, damaged));
}

#[test]
fn the_block_behind_the_last_that_was_carved_is_not_in_use() {
    let memory = Memory::new(SHAPE.region_bytes(), 0);
    let mut pool = memory.fixed(SHAPE);
    let blocks: Vec<_> = (0..64).map(|_| pool.allocate().unwrap()).collect();
    // SAFETY: inside the blocks.
    let next = unsafe { blocks[63].byte_add(SHAPE.spacing()) };
    let never = Error::NeverAllocated { block: next.addr().get(), bytes: 48 };
    assert_eq!(pool.usable_size(next), Err(never));
    assert_eq!((pool.leaks().count(), pool.stats().n_used), (64, 64));
}

#[test]
fn a_wrong_link_of_a_shared_pool_is_found() {
    const IN_USE: u32 = u32::MAX;
    const KEPT: u32 = u32::MAX - 1;
    let memory = Memory::new(SHAPE.shared_region_bytes(), 0xA5);
    let mut pool = memory.shared(SHAPE);
    let blocks: Vec<_> = (0..8).map(|_| pool.allocate().unwrap()).collect();
    let index = |block: NonNull<u8>| (block.addr().get() - memory.start.addr().get()) / SHAPE.spacing();
    for block in &blocks[..3] {
        // SAFETY: given back once.
        unsafe { pool.deallocate(*block) }.unwrap();
    }
    assert_eq!(pool.check(), Ok(()));
    // SAFETY: behind the blocks lies a link of 4 bytes for each.
    let link = |block| unsafe { memory.start.byte_add(COUNT * SHAPE.spacing() + 4 * index(block)).cast::<u32>() };
    let mut damage = |block: NonNull<u8>, wrong: u32| {
        // SAFETY: inside the memory; the pool is not at work.
        let right = unsafe { link(block).replace(wrong) };
        let found = pool.check();
        // SAFETY: as above.
        unsafe { link(block).write(right) };
        assert_eq!(pool.check(), Ok(()));
        found
    };
    // The list begins with the block freed last.
    let (first, used) = (blocks[2], blocks[5]);
    let named = |block: NonNull<u8>| Err(Error::Damaged { block: block.addr().get() });
    assert_eq!(damage(first, KEPT), named(memory.start), "a list cut short");
    assert_eq!(damage(first, IN_USE), named(memory.start), "a free block marked as in use");
    assert_eq!(damage(first, COUNT as u32 + 9), named(first), "a link past the blocks");
    assert_eq!(damage(first, index(used) as u32 + 1), named(first), "a link to a block in use");
    assert_eq!(damage(used, KEPT), named(memory.start), "a block that is neither in use nor free");
    assert!(damage(first, index(first) as u32 + 1).is_err(), "a circle");
}

/// A write past the last block makes the first link name no block, and so, once its block was popped, the head of the list.
#[test]
fn a_wrong_link_of_a_shared_pool_lets_no_allocation_search_for_ever() {
    let memory = Memory::new(SHAPE.shared_region_bytes(), 0xA5);
    let mut pool = memory.shared(SHAPE);
    let blocks: Vec<_> = (0..COUNT).map(|_| pool.allocate().unwrap()).collect();
    // SAFETY: given back once.
    unsafe { pool.deallocate(blocks[0]) }.unwrap();
    // SAFETY: behind the blocks lie the links.
    let links = unsafe { blocks[COUNT - 1].byte_add(SHAPE.spacing()) };
    // SAFETY: inside the memory; the pool is not at work.
    unsafe { links.write_bytes(0x41, 4) };
    assert_eq!(pool.allocate(), Ok(blocks[0]));
    let exhausted = Err(Error::Exhausted { count: COUNT, block_bytes: 48 });
    assert_eq!((pool.allocate(), pool.magazine().allocate_zeroed()), (exhausted, exhausted));
    assert!(matches!(pool.check(), Err(Error::Damaged { .. })));
}

/// A reused block is cleared, also in memory that began as zeros; a fresh one need not be.
#[test]
fn a_zeroed_block_of_a_shared_pool_is_zero_when_it_is_reused() {
    let memory = Memory::new(SHAPE.shared_region_bytes(), 0);
    // SAFETY: the memory is zero, and no other code uses it.
    let pool = unsafe { SharedPool::new_zeroed_at(SHAPE, memory.start, memory.bytes()) }.unwrap();
    let mut magazine = pool.magazine();
    for _ in 0..3 * COUNT {
        let (block, other) = (pool.allocate_zeroed().unwrap(), magazine.allocate_zeroed().unwrap());
        for block in [block, other] {
            // SAFETY: in use, and that long.
            let bytes = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), SHAPE.block_bytes()) };
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.fill(0xFF);
        }
        // SAFETY: given back once.
        unsafe { pool.deallocate(block) }.unwrap();
        // SAFETY: as above.
        unsafe { magazine.deallocate(other) }.unwrap();
    }
}

#[cfg(target_pointer_width = "64")]
#[test]
fn as_many_blocks_as_links_can_name_are_not_too_many() {
    let memory = Memory::new(64, 0);
    let shape = |count| Shape::new(8, count).unwrap();
    let most = u32::MAX as usize - 2;
    // SAFETY: nothing is written to a refused region.
    let made = |count| unsafe { SharedPool::new_at(shape(count), memory.start, memory.bytes()) }.err();
    assert!(matches!(made(most), Some(Error::RegionTooSmall { .. })));
    assert_eq!(made(most + 1), Some(Error::TooLarge { block_bytes: 8, count: most + 1 }));
}

/// A magazine that carves stops where a cache line of links begins, so that the next one begins there.
#[test]
fn magazines_carve_to_the_end_of_a_line_of_links() {
    // Lines are fetched in pairs: 32 links of 4 bytes.
    const TOGETHER: usize = 32;
    for count in (320..320 + 2 * TOGETHER).step_by(if cfg!(miri) { 9 } else { 1 }) {
        let shape = Shape::new(8, count).unwrap();
        let memory = Memory::new(shape.shared_region_bytes(), 0xA5);
        let pool = memory.shared(shape);
        let (mut first, mut second) = (pool.magazine(), pool.magazine());
        let begun = (memory.start.addr().get() + count * shape.spacing()) / 4 % TOGETHER;
        let carved = |magazine: &mut freestone_pool::Magazine<'_, '_>| {
            let before = pool.stats().n_fresh;
            magazine.allocate().unwrap();
            before - pool.stats().n_fresh
        };
        let (n_first, n_second) = (carved(&mut first), carved(&mut second));
        assert_eq!((n_first + begun) % TOGETHER, 0, "{count} blocks: links begin {begun} into a line");
        assert_eq!((n_second, n_first), (n_first + begun, n_second - begun), "{count} blocks");
    }
}

#[test]
fn a_block_given_back_unchecked_is_not_in_use() {
    let memory = Memory::new(SHAPE.shared_region_bytes(), 0xA5);
    let mut pool = memory.shared(SHAPE);
    let mut magazine = pool.magazine();
    let (kept, listed) = (magazine.allocate().unwrap(), pool.allocate().unwrap());
    assert_eq!(pool.stats().n_used, 2);
    // SAFETY: in use, and given back once.
    unsafe { magazine.deallocate_unchecked(kept) };
    assert_eq!(pool.stats().n_used, 1);
    // SAFETY: as above.
    unsafe { pool.deallocate_unchecked(listed) };
    assert_eq!((pool.stats().n_used, pool.leaks().count()), (0, 0));
    drop(magazine);
    assert_eq!(pool.check(), Ok(()));
}

#[test]
fn a_magazine_that_was_flushed_has_no_block_left() {
    let memory = Memory::new(SHAPE.shared_region_bytes(), 0xA5);
    let pool = memory.shared(SHAPE);
    let mut magazine = pool.magazine();
    let blocks: Vec<_> = (0..10).map(|_| magazine.allocate().unwrap()).collect();
    for block in blocks {
        // SAFETY: given back once.
        unsafe { magazine.deallocate(block) }.unwrap();
    }
    magazine.flush();
    let mut all: Vec<_> = core::iter::from_fn(|| pool.allocate().ok()).collect();
    assert_eq!((all.len(), magazine.allocate().is_err()), (COUNT, true), "each block is in one place");
    drop(magazine);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), COUNT);
}

/// A heap that must not be asked to free anything.
struct Untouched;

// SAFETY: it never returns a block.
unsafe impl Fallback for Untouched {
    fn allocate(&self, _layout: Layout) -> Option<NonNull<u8>> {
        None
    }
    fn allocate_zeroed(&self, _layout: Layout) -> Option<NonNull<u8>> {
        None
    }
    unsafe fn deallocate(&self, block: NonNull<u8>, _layout: Layout) -> bool {
        panic!("{block:?} is the pool's");
    }
}

#[test]
fn the_fallback_gets_no_address_of_the_pool_whatever_is_wrong_with_it() {
    let memory = Memory::new(SHAPE.shared_region_bytes(), 0xA5);
    let mut fixed = memory.fixed(SHAPE).with_fallback(Untouched);
    let block = fixed.allocate().unwrap();
    // SAFETY: given back once.
    unsafe { fixed.deallocate(block) }.unwrap();
    for offset in [0, 8, SHAPE.spacing()] {
        // SAFETY: inside the blocks.
        let wrong = unsafe { block.byte_add(offset) };
        // SAFETY: refused.
        assert!(unsafe { fixed.deallocate(wrong) }.is_err());
    }
    let shared = memory.shared(SHAPE).with_fallback(Untouched);
    let block = shared.allocate().unwrap();
    // SAFETY: given back once.
    unsafe { shared.deallocate(block) }.unwrap();
    for offset in [0, 8, SHAPE.spacing()] {
        // SAFETY: inside the blocks.
        let wrong = unsafe { block.byte_add(offset) };
        // SAFETY: refused.
        assert!(unsafe { shared.deallocate(wrong) }.is_err());
    }
}

#[test]
fn a_region_that_is_aligned_less_than_the_blocks_is_refused() {
    let shape = Shape::aligned(100, 4, 256).unwrap();
    let memory = Memory::new(shape.shared_region_bytes() + 128, 0);
    // SAFETY: inside the memory; nothing is written to a refused region.
    let (start, bytes) = (unsafe { memory.start.byte_add(128) }, shape.shared_region_bytes());
    let misaligned = Error::RegionMisaligned { address: start.addr().get(), align: 256 };
    // SAFETY: as above.
    assert_eq!(unsafe { FixedPool::new_at(shape, start, bytes) }.err(), Some(misaligned));
    // SAFETY: as above.
    assert_eq!(unsafe { SharedPool::new_at(shape, start, bytes) }.err(), Some(misaligned));
}
