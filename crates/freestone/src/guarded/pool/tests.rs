use super::*;
use crate::size_class::{SMALL_MAX, class_of};
use freestone_os::stack::Stack;
use std::vec::Vec;

fn site(thread: i32) -> Site {
    Site { thread, stack: Stack::of([thread as usize].into_iter()) }
}

fn wanted(size: usize, align: usize) -> Wanted {
    Wanted { size, align, class: class_of(size) }
}

fn allocate(pool: &GuardedPool, size: usize, at_end: bool) -> usize {
    let (block, _) = pool.allocate(wanted(size, 16), at_end, &site(1)).unwrap();
    address::expose(block)
}

fn write(at: usize, byte: u8) {
    // SAFETY: the tests write to open pages only.
    unsafe { address::from_exposed::<u8>(at).write(byte) }
}

#[test]
fn blocks_are_zero_apart_aligned_and_keep_what_is_written() {
    let pool = GuardedPool::new();
    let mut blocks = Vec::new();
    for (n, size) in [0, 1, 8, 24, 100, 4096, 5000, SMALL_MAX].into_iter().cycle().take(64).enumerate() {
        let align = [16, 32, 4096][n % 3];
        let (block, _) = pool.allocate(wanted(size, align), n % 2 == 0, &site(1)).unwrap();
        assert!(block.addr().is_multiple_of(align));
        // SAFETY: the block has so many bytes.
        let bytes = unsafe { slice::from_raw_parts_mut(block, size) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        bytes.fill(n as u8);
        blocks.push((block, size));
    }
    for (n, &(block, size)) in blocks.iter().enumerate() {
        // SAFETY: as above.
        assert!(unsafe { slice::from_raw_parts(block, size) }.iter().all(|&byte| byte == n as u8));
        assert_eq!(pool.size_of(block.addr()), Ok(size));
        assert!(matches!(pool.free(block.addr(), &site(2)), Freed::Yes { .. }));
    }
    assert_eq!((pool.live_classes().count(), pool.open_bytes()), (0, 0));
}

#[test]
fn a_slot_is_used_again_only_after_all_others() {
    let pool = GuardedPool::new();
    let first = allocate(&pool, 24, true);
    pool.free(first, &site(2));
    let others: Vec<usize> = (1..N_SLOTS).map(|_| allocate(&pool, 24, true)).collect();
    assert!(!others.contains(&first));
    assert_eq!(allocate(&pool, 24, true), first);
    assert!(pool.allocate(wanted(24, 16), true, &site(1)).is_none(), "all are in use");
    assert!(matches!(pool.free(others[7], &site(2)), Freed::Yes { .. }));
    assert_eq!(allocate(&pool, 24, true), others[7]);
}

#[test]
fn what_is_not_the_start_of_a_live_block_is_not_freed() {
    let pool = GuardedPool::new();
    let block = allocate(&pool, 40, true);
    let class = block_bytes(class_of(40));
    assert_eq!(pool.free(block + 8, &site(2)), Freed::No(Misuse::Interior { block_bytes: class, offset: 8 }));
    assert_eq!(pool.free(block - 8, &site(2)), Freed::No(Misuse::Foreign));
    assert_eq!(pool.free(block + 8192, &site(2)), Freed::No(Misuse::Foreign), "a slot that was never used");
    assert_eq!(pool.history(block).map(|history| (history.allocated, history.freed)), Some((site(1), None)));
    assert!(matches!(pool.free(block, &site(2)), Freed::Yes { .. }));
    assert_eq!(pool.free(block, &site(3)), Freed::No(Misuse::DoubleFree { block_bytes: class }));
    assert_eq!(pool.size_of(block), Err(Misuse::DoubleFree { block_bytes: class }));
    assert_eq!(pool.history(block).map(|history| (history.allocated, history.freed)), Some((site(1), Some(site(2)))));
}

#[test]
fn a_byte_written_beside_a_block_in_its_page_is_noticed_when_the_block_is_freed() {
    for (size, at_end, offset) in [(40, true, 40), (40, true, -1), (40, false, 40), (40, false, 40 + 31)] {
        let pool = GuardedPool::new();
        let block = allocate(&pool, size, at_end);
        write(block.wrapping_add_signed(offset), 1);
        let what = Misuse::BesideBlock { block_bytes: 48, size: Some(size), offset, touch: Touch::Write };
        assert_eq!(pool.free(block, &site(2)), Freed::No(what), "{offset}");
        write(block.wrapping_add_signed(offset), FILLING);
        assert!(matches!(pool.free(block, &site(2)), Freed::Yes { .. }));
    }
}

#[test]
fn a_fault_is_judged_by_the_block_that_is_nearest_and_its_state() {
    let pool = GuardedPool::new();
    let (first, second) = (allocate(&pool, 32, true), allocate(&pool, 32, false));
    let judge = |at: usize| pool.judge(at, Touch::Read).map(|crime| (crime.what, crime.block));
    let out = |offset| Misuse::BesideBlock { block_bytes: 32, size: Some(32), offset, touch: Touch::Read };
    assert_eq!(judge(first + 32), Some((out(32), first)));
    assert_eq!(judge(second - 1), Some((out(-1), second)));
    assert_eq!(judge(second + 8192), Some((out(8192), second)), "a closed page of the slot");
    pool.free(first, &site(2));
    let used = Misuse::FreedBlock { block_bytes: 32, size: Some(32), offset: 4, touch: Touch::Read };
    assert_eq!(judge(first + 4), Some((used, first)));
    let far = allocate(&pool, 32, true);
    assert_eq!(judge(far + 40 + GuardedPool::geometry().page()), None, "a slot that was never used");
    assert_eq!(judge(0), None);
    assert_eq!(
        pool.judge(pool.start.load(Ordering::Relaxed), Touch::Read).map(|crime| crime.block),
        None,
        "the records"
    );
}

#[test]
fn a_slot_that_was_given_up_is_open_and_never_used_again() {
    let pool = GuardedPool::new();
    let block = allocate(&pool, 32, true);
    pool.free(block, &site(2));
    assert!(pool.give_up(block));
    write(block, 1);
    let others: Vec<usize> = (1..N_SLOTS).map(|_| allocate(&pool, 32, true)).collect();
    assert!(!others.contains(&block));
    assert!(pool.allocate(wanted(32, 16), true, &site(1)).is_none());
}

#[test]
fn what_does_not_fit_into_a_slot_is_not_guarded() {
    let pool = GuardedPool::new();
    let page = process::os_page_bytes();
    assert!(pool.allocate(wanted(32, 2 * page), true, &site(1)).is_none());
    let large = Wanted { size: GuardedPool::geometry().slot_bytes() + 1, align: 16, class: 0 };
    assert!(pool.allocate(large, true, &site(1)).is_none());
    assert_eq!(pool.metadata_bytes(), 0, "nothing is mapped for that");
}
