//! Bad input: the error names the block, and the pool is unchanged.
#![allow(unsafe_code, reason = "bad input is given on purpose")]

mod subject;

use freestone_pool::{Error, FixedPool, HeapFallback, Shape, SharedPool};
use std::alloc::System;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use subject::Memory;

const SHAPE: Shape = match Shape::new(48, 70) {
    Ok(shape) => shape,
    Err(_) => panic!("no such pool"),
};

fn memory() -> Memory {
    Memory::new(SHAPE.shared_region_bytes(), 0xA5)
}

fn address(block: NonNull<u8>) -> usize {
    block.addr().get()
}

#[test]
fn a_region_that_is_misaligned_or_too_short_is_refused() {
    let memory = memory();
    for offset in [1, 8] {
        // SAFETY: nothing is written to a refused region.
        let (start, bytes) = unsafe { (memory.start.byte_add(offset), memory.bytes() - offset) };
        let misaligned = Error::RegionMisaligned { address: address(start), align: 16 };
        // SAFETY: as above.
        assert_eq!(unsafe { FixedPool::new_at(SHAPE, start, bytes) }.err(), Some(misaligned));
        // SAFETY: as above.
        assert_eq!(unsafe { SharedPool::new_at(SHAPE, start, bytes) }.err(), Some(misaligned));
    }
    let (bytes, least) = (SHAPE.region_bytes() - 1, SHAPE.region_bytes());
    // SAFETY: as above.
    let refused = unsafe { FixedPool::new_at(SHAPE, memory.start, bytes) };
    assert_eq!(refused.err(), Some(Error::RegionTooSmall { bytes, least }));
    let (bytes, least) = (SHAPE.shared_region_bytes() - 1, SHAPE.shared_region_bytes());
    // SAFETY: as above.
    let refused = unsafe { SharedPool::new_at(SHAPE, memory.start, bytes) };
    assert_eq!(refused.err(), Some(Error::RegionTooSmall { bytes, least }));
    assert!(matches!(
        FixedPool::new(SHAPE, &mut []).err(),
        Some(Error::RegionTooSmall { .. } | Error::RegionMisaligned { .. })
    ));
}

#[cfg(target_pointer_width = "64")]
#[test]
fn a_shared_pool_of_more_blocks_than_32_bits_name_is_refused() {
    let (block_bytes, count) = (8, u32::MAX as usize);
    let shape = Shape::new(block_bytes, count).unwrap();
    let memory = Memory::new(64, 0);
    // SAFETY: nothing is written to a refused region.
    let refused = unsafe { SharedPool::new_at(shape, memory.start, usize::MAX) };
    assert_eq!(refused.err(), Some(Error::TooLarge { block_bytes, count }));
}

/// The same wrong frees on each kind of pool.
macro_rules! wrong_frees_are_named {
    ($test:ident, $make:ident) => {
        #[test]
        fn $test() {
            let (memory, elsewhere) = (memory(), memory());
            #[allow(unused_mut)]
            let (mut pool, mut other) = (memory.$make(SHAPE), elsewhere.$make(SHAPE));
            let (first, second) = (pool.allocate().unwrap(), pool.allocate().unwrap());
            let (theirs, bytes) = (other.allocate().unwrap(), SHAPE.block_bytes());
            let on_the_stack = 0_u64;
            // SAFETY: each is refused, so nothing happens to any block; the last two are right.
            unsafe {
                for offset in [1, 8, 32, 47, 63] {
                    let inside = second.byte_add(offset);
                    let expected = Error::Interior { address: address(inside), block: address(second), bytes };
                    assert_eq!(pool.deallocate(inside), Err(expected));
                    assert_eq!(pool.usable_size(inside), Err(expected));
                }
                let never = second.byte_add(5 * SHAPE.spacing());
                assert_eq!(pool.deallocate(never), Err(Error::NeverAllocated { block: address(never), bytes }));
                let behind = first.byte_add(SHAPE.count() * SHAPE.spacing());
                for stranger in [theirs, NonNull::from(&on_the_stack).cast(), NonNull::dangling(), behind] {
                    assert_eq!(pool.deallocate(stranger), Err(Error::Foreign { address: address(stranger) }));
                    assert_eq!(pool.usable_size(stranger), Err(Error::Foreign { address: address(stranger) }));
                }
                assert_eq!(pool.usable_size(first), Ok(bytes));
                assert_eq!(pool.deallocate(first), Ok(()));
                for _ in 0..3 {
                    assert_eq!(pool.deallocate(first), Err(Error::DoubleFree { block: address(first), bytes }));
                }
                assert_eq!(pool.stats().n_used, 1);
                assert_eq!(pool.check(), Ok(()));
                let error = pool.check_idle().unwrap_err();
                assert_eq!(error, Error::InUse { block: address(second), n_blocks: 1 });
                let (mut pool, again) = pool.close().err().unwrap();
                assert_eq!(again, error);
                assert_eq!(pool.deallocate(second), Ok(()));
                assert_eq!(pool.check(), Ok(()));
                assert!(pool.close().is_ok());
            }
        }
    };
}

wrong_frees_are_named!(a_fixed_pool_names_the_block_of_every_wrong_free, fixed);
wrong_frees_are_named!(a_shared_pool_names_the_block_of_every_wrong_free, shared);

#[test]
fn exhaustion_is_an_error_and_passes() {
    let memory = memory();
    let mut pool = memory.fixed(SHAPE);
    let blocks: Vec<_> = (0..70).map(|_| pool.allocate().unwrap()).collect();
    let exhausted = Error::Exhausted { count: 70, block_bytes: 48 };
    assert_eq!(pool.allocate(), Err(exhausted));
    assert_eq!(pool.allocate_zeroed(), Err(exhausted));
    // SAFETY: in use, and used no more.
    unsafe { pool.deallocate(blocks[33]) }.unwrap();
    assert_eq!(pool.allocate(), Ok(blocks[33]));
}

#[test]
fn a_double_free_of_a_block_in_a_magazine_is_reported() {
    let memory = memory();
    let pool = memory.shared(SHAPE);
    let (mut mine, mut theirs) = (pool.magazine(), pool.magazine());
    let block = mine.allocate().unwrap();
    let double = Err(Error::DoubleFree { block: address(block), bytes: 48 });
    // SAFETY: given back once; the others are refused.
    assert_eq!(unsafe { mine.deallocate(block) }, Ok(()));
    // SAFETY: as above.
    assert_eq!(unsafe { mine.deallocate(block) }, double);
    // SAFETY: as above.
    assert_eq!(unsafe { theirs.deallocate(block) }, double);
    // SAFETY: as above.
    assert_eq!(unsafe { pool.deallocate(block) }, double);
}

#[test]
fn a_write_into_free_blocks_damages_no_bookkeeping() {
    let memory = memory();
    let mut pool = memory.fixed(SHAPE);
    let blocks: Vec<_> = (0..3).map(|_| pool.allocate().unwrap()).collect();
    for block in &blocks[..2] {
        // SAFETY: given back once; the wrong write stays inside the block.
        unsafe { pool.deallocate(*block) }.unwrap();
        // SAFETY: as above.
        unsafe { block.write_bytes(0x7F, SHAPE.block_bytes()) };
    }
    assert_eq!(pool.check(), Ok(()));
    let again = [pool.allocate_zeroed().unwrap(), pool.allocate().unwrap()];
    assert_eq!(again, blocks[..2]);
    // SAFETY: in use.
    assert_eq!((unsafe { again[0].read() }, unsafe { again[1].read() }), (0, 0x7F));
}

#[test]
fn overwritten_bookkeeping_is_found() {
    let memory = memory();
    let mut pool = memory.fixed(SHAPE);
    let blocks: Vec<_> = (0..70).map(|_| pool.allocate().unwrap()).collect();
    // SAFETY: given back once.
    unsafe { pool.deallocate(blocks[66]) }.unwrap();
    // SAFETY: inside the memory: the bits of the second group.
    let bits = unsafe { memory.start.byte_add(70 * SHAPE.spacing() + 16) }.cast::<u64>();
    // SAFETY: inside the memory: the link of the second group, behind its bits.
    let link = unsafe { bits.byte_add(8) }.cast::<usize>();
    let damage = |place: NonNull<u64>, wrong: u64| {
        // SAFETY: the place is in the memory, and the pool is not at work.
        let right = unsafe { place.replace(wrong) };
        let found = pool.check();
        // SAFETY: as above.
        unsafe { place.write(right) };
        assert_eq!(pool.check(), Ok(()));
        found
    };
    let damaged = |index: usize| Err(Error::Damaged { block: address(blocks[index]) });
    assert_eq!(damage(bits, 0), damaged(64), "on the list without a free block");
    assert_eq!(damage(bits, 1 << 6), damaged(64), "a free block behind the last");
    assert_eq!(damage(link.cast(), 2), damaged(64), "a group that is none");
    assert_eq!(damage(link.cast(), 1), damaged(64), "a group twice");
}

/// Whatever a write past the last block does to the bookkeeping, the pool hands out its own blocks or refuses.
#[test]
fn damaged_bookkeeping_never_leads_out_of_the_pool() {
    const SHAPE: Shape = match Shape::new(64, 150) {
        Ok(shape) => shape,
        Err(_) => panic!("no such pool"),
    };
    let mut random = 1_u64;
    for round in 0..if cfg!(miri) { 20 } else { 2000 } {
        let memory = Memory::new(SHAPE.region_bytes(), 0xA5);
        let mut pool = memory.fixed(SHAPE);
        let blocks: Vec<_> = (0..140).map(|_| pool.allocate().unwrap()).collect();
        for block in blocks.iter().step_by(3) {
            // SAFETY: given back once.
            unsafe { pool.deallocate(*block) }.unwrap();
        }
        for at in (SHAPE.count() * SHAPE.spacing()..SHAPE.region_bytes()).step_by(8) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let wrong = [random, random >> 60, 0, u64::MAX][(random >> 33) as usize % 4];
            // SAFETY: inside the memory; the pool is not at work.
            unsafe { memory.start.as_ptr().wrapping_add(at).cast::<u64>().write(wrong) };
        }
        let mut refusal = None;
        for _ in 0..200 {
            match pool.allocate() {
                Ok(block) => {
                    let offset = block.addr().get().wrapping_sub(memory.start.addr().get());
                    assert!(
                        offset < SHAPE.count() * SHAPE.spacing() && offset.is_multiple_of(SHAPE.spacing()),
                        "round {round}"
                    );
                }
                Err(error) => refusal = Some(error),
            }
        }
        assert!(
            matches!(refusal, None | Some(Error::Exhausted { .. } | Error::Damaged { .. })),
            "round {round}: {refusal:?}"
        );
    }
}

#[test]
fn blocks_come_from_the_group_of_the_last_free_and_are_adjacent() {
    let shape = Shape::new(16, 300).unwrap();
    let memory = Memory::new(shape.region_bytes(), 0xA5);
    let mut pool = memory.fixed(shape);
    let blocks: Vec<_> = (0..300).map(|_| pool.allocate().unwrap()).collect();
    for index in [290, 70, 5, 66, 291, 64] {
        // SAFETY: given back once.
        unsafe { pool.deallocate(blocks[index]) }.unwrap();
    }
    let again: Vec<_> = (0..6).map(|_| pool.allocate().unwrap()).collect();
    assert_eq!(again, [5, 64, 66, 70, 290, 291].map(|index| blocks[index]));
}

#[test]
fn an_exhausted_pool_falls_through_to_its_heap_and_takes_its_blocks_back() {
    let shape = Shape::aligned(100, 2, 64).unwrap();
    let memory = Memory::new(shape.region_bytes(), 0xA5);
    let mut pool = memory.fixed(shape).with_fallback(HeapFallback(System));
    let blocks: Vec<_> = (0..5).map(|_| pool.allocate_zeroed().unwrap()).collect();
    let n_inside = blocks.iter().filter(|&&block| pool.contains(block)).count();
    assert_eq!((n_inside, pool.stats().n_used), (2, 2));
    for block in blocks {
        assert!(block.addr().get().is_multiple_of(64));
        // SAFETY: 100 bytes in use; given back once.
        assert!((0..100).all(|offset| unsafe { block.as_ptr().wrapping_add(offset).read() } == 0));
        // SAFETY: as above.
        unsafe { pool.deallocate(block) }.unwrap();
    }
    assert!(pool.close().is_ok());
}

#[test]
fn a_shared_pool_falls_through_too() {
    let shape = Shape::new(100, 2).unwrap();
    let memory = Memory::new(shape.shared_region_bytes(), 0xA5);
    let pool = memory.shared(shape).with_fallback(HeapFallback(System));
    let mut magazine = pool.magazine();
    let blocks: Vec<_> =
        (0..3).map(|_| magazine.allocate().unwrap()).chain([pool.allocate_zeroed().unwrap()]).collect();
    for block in blocks {
        // SAFETY: given back once.
        unsafe { magazine.deallocate(block) }.unwrap();
    }
    drop(magazine);
    assert!(pool.close().is_ok());
}

#[test]
fn memory_that_was_never_used_is_not_written() {
    let shape = Shape::new(256, 64).unwrap();
    let memory = Memory::new(shape.region_bytes(), 0xA5);
    let mut pool = memory.fixed(shape);
    let (first, second) = (pool.allocate().unwrap(), pool.allocate().unwrap());
    // SAFETY: blocks in use; given back once.
    assert_eq!((unsafe { first.read() }, unsafe { second.read() }), (0xA5, 0xA5));
    // SAFETY: as above.
    unsafe { pool.deallocate(second) }.unwrap();
    // SAFETY: as above.
    unsafe { pool.deallocate(first) }.unwrap();
    assert_eq!(pool.allocate().unwrap(), first);
    // SAFETY: as above.
    let behind = unsafe { second.byte_add(256) };
    // SAFETY: as above.
    assert!((0..62 * 256).all(|offset| unsafe { behind.as_ptr().wrapping_add(offset).read() } == 0xA5));
}

#[test]
fn zeroing_clears_the_block_and_nothing_behind_it() {
    let shape = Shape::new(40, 2).unwrap();
    let memory = Memory::new(shape.region_bytes(), 0xA5);
    let block = memory.fixed(shape).allocate_zeroed().unwrap();
    // SAFETY: the gap behind the block is the pool's, which is gone.
    let bytes: [u8; 64] = unsafe { block.cast().read() };
    assert!(bytes[..40].iter().all(|&byte| byte == 0) && bytes[40..].iter().all(|&byte| byte == 0xA5));
}

#[test]
fn every_error_names_what_happened_and_the_block() {
    let mut memory = [MaybeUninit::uninit(); 8];
    let error = FixedPool::new(SHAPE, &mut memory[..]).err().unwrap();
    assert!(error.to_string().contains("region"), "{error}");
    let errors = [
        (Error::ZeroBlockSize, "a pool of blocks of 0 bytes was requested: request at least 1"),
        (Error::DoubleFree { block: 0x40, bytes: 48 }, "double free of 0x40: the block of 48 bytes is free already"),
        (
            Error::Interior { address: 0x48, block: 0x40, bytes: 48 },
            "0x48 is inside block 0x40 of 48 bytes: pass the block's start",
        ),
        (Error::InUse { block: 0x40, n_blocks: 3 }, "3 blocks are still in use, the first at 0x40: free them first"),
    ];
    for (error, text) in errors {
        assert_eq!(error.to_string(), text);
    }
}
