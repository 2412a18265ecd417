use super::*;
use crate::size_class::{SMALL_MAX, class_of};
use freestone_os::stack::Stack;
use std::vec::Vec;

fn site(thread: i32) -> Site {
    Site { thread, stack: Stack::of([thread as usize].into_iter()) }
}

fn wanted(size: usize, align: usize) -> Wanted {
    Wanted { size, align, kind: Kind::new(class_of(size), align, 4) }
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
    for (n, size) in
        [0, 1, 8, 24, 100, 4096, 5000, SMALL_MAX].into_iter().cycle().take(if cfg!(miri) { 8 } else { 64 }).enumerate()
    {
        let align = [16, 32, 4096][n % 3];
        let (block, _) = pool.allocate(wanted(size, align), n % 2 == 0, &site(1)).unwrap();
        assert!(block.addr().is_multiple_of(align));
        // SAFETY: the block has so many bytes.
        let bytes = unsafe { slice::from_raw_parts_mut(block, size) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        bytes.fill(n as u8);
        blocks.push((block, size, align));
    }
    for (n, &(block, size, align)) in blocks.iter().enumerate() {
        // SAFETY: as above.
        assert!(unsafe { slice::from_raw_parts(block, size) }.iter().all(|&byte| byte == n as u8));
        let found = pool
            .block_at(block.addr())
            .map(|found| (found.size, found.kind.class(), 1 << found.kind.align_log2(), found.kind.family()));
        assert_eq!(found, Ok((size, class_of(size), align, 4)));
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
    assert_eq!(pool.free(block + 40, &site(2)), Freed::No(Misuse::Interior { block_bytes: class, offset: 40 }));
    assert_eq!(pool.free(block + 41, &site(2)), Freed::No(Misuse::Foreign), "nearer to the next block");
    assert_eq!(pool.free(block + 8192, &site(2)), Freed::No(Misuse::Foreign), "a slot that was never used");
    assert_eq!(pool.history(block).map(|history| (history.allocated, history.freed)), Some((site(1), None)));
    assert!(matches!(pool.free(block, &site(2)), Freed::Yes { .. }));
    assert_eq!(pool.free(block, &site(3)), Freed::No(Misuse::DoubleFree { block_bytes: class }));
    assert_eq!(pool.block_at(block), Err(Misuse::DoubleFree { block_bytes: class }));
    assert_eq!(pool.history(block).map(|history| (history.allocated, history.freed)), Some((site(1), Some(site(2)))));
}

#[test]
fn a_byte_written_beside_a_block_in_its_page_is_noticed_when_the_block_is_freed() {
    for (size, at_end, offset) in
        [(40, true, 40), (40, true, -1), (40, false, 40), (40, false, 40 + 31), (47, true, 47), (41, true, 45)]
    {
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
    let half = GuardedPool::geometry().page() / 2;
    assert_eq!(judge(first + 32 + half), Some((out(32 + half as isize), first)));
    assert_eq!(judge(first + 33 + half), Some((out(1 - half as isize), second)));
    assert_eq!(judge(second + 8192), Some((out(8192), second)), "a closed page of the slot");
    assert_eq!([second, second + 31].map(judge), [None; 2], "the program has closed its own block");
    pool.free(first, &site(2));
    let used = Misuse::FreedBlock { block_bytes: 32, size: Some(32), offset: 4, touch: Touch::Read };
    assert_eq!(judge(first + 4), Some((used, first)));
    let far = allocate(&pool, 32, true);
    let (page, slot_bytes) = (GuardedPool::geometry().page(), GuardedPool::geometry().slot_bytes());
    for offset in [32 + page - 1, 32 + page, 32 + page + slot_bytes - 1] {
        assert_eq!(
            judge(far + offset),
            Some((out(offset as isize), far)),
            "up to the end of a slot that was never used"
        );
    }
    assert_eq!(judge(far + 32 + 2 * page + slot_bytes), None, "the slot behind that");
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
    let large = Wanted { size: GuardedPool::geometry().slot_bytes() + 1, ..wanted(32, 16) };
    assert!(pool.allocate(large, true, &site(1)).is_none());
    assert_eq!(pool.metadata_bytes(), 0, "nothing is mapped for that");
}

#[test]
fn live_blocks_are_counted_with_their_classes_and_the_bytes_of_their_pages() {
    let (pool, page) = (GuardedPool::new(), process::os_page_bytes());
    let [small, large] = [24, 5000].map(|size| allocate(&pool, size, false));
    assert!(pool.live_classes().eq([24, 5000].map(class_of)));
    assert_eq!(pool.open_bytes(), (page + 5000_usize.next_multiple_of(page)) as u64);
    assert_eq!(pool.metadata_bytes(), GuardedPool::geometry().records() as u64);
    assert_eq!(pool.free(small, &site(2)), Freed::Yes { class: class_of(24), bytes: page });
    assert!(pool.live_classes().eq([class_of(5000)]));
    assert_eq!(pool.open_bytes(), 5000_usize.next_multiple_of(page) as u64);
    assert_eq!([small, large].map(|block| pool.block_at(block).is_ok()), [false, true]);
}

#[test]
fn addresses_of_the_mapping_are_the_pools_and_no_others() {
    let pool = GuardedPool::new();
    assert!(!pool.contains(0) && !pool.contains(usize::MAX) && pool.judge(0, Touch::Read).is_none());
    let first = allocate(&pool, 24, true);
    let start = pool.start.load(Ordering::Relaxed);
    let end = start + GuardedPool::geometry().total();
    assert!([start, first, end - 1].iter().all(|&at| pool.contains(at)));
    assert!(![0, start - 1, end, usize::MAX].iter().any(|&at| pool.contains(at)));
}

#[test]
fn a_page_beside_a_live_block_that_was_touched_is_open_and_the_block_lives_on_but_no_other_uses_its_slot() {
    let (pool, page) = (GuardedPool::new(), process::os_page_bytes());
    let block = allocate(&pool, 32, false);
    assert!(pool.give_up(block + page + 5));
    [0, page - 1].iter().for_each(|offset| write(block + page + offset, 1));
    assert!(matches!(pool.free(block, &site(2)), Freed::Yes { .. }));
    let others: Vec<usize> = (1..N_SLOTS).map(|_| allocate(&pool, 32, false)).collect();
    assert!(!others.contains(&block));
    assert!(pool.allocate(wanted(5000, 16), false, &site(1)).is_none(), "the block would not be zero");
}

#[test]
fn a_fork_holds_the_lock_from_before_until_after() {
    let pool = GuardedPool::new();
    pool.lock_for_fork();
    assert!(pool.vacant.try_lock().is_none());
    // SAFETY: this thread took the lock above.
    pool.unlock_after_fork(unsafe { Forker::new() });
    assert!(pool.vacant.try_lock().is_some());
}

#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(miri, ignore = "asks the kernel what can be read")]
fn the_pages_of_a_block_can_be_read_while_it_is_live_and_no_others() {
    let (pool, page) = (GuardedPool::new(), process::os_page_bytes());
    let is_open = |at: usize| crate::testing::kernel_can_read(address::from_exposed::<u8>(at));
    let block = allocate(&pool, page + 100, false);
    assert_eq!([0, page, 2 * page].map(|offset| is_open(block + offset)), [true, true, false]);
    assert!(!is_open(block - 1));
    assert!(matches!(pool.free(block, &site(2)), Freed::Yes { .. }));
    assert_eq!([0, page, 2 * page].map(|offset| is_open(block + offset)), [false; 3]);
}

#[test]
fn a_block_that_another_thread_is_freeing_is_freed_as_far_as_any_other_can_see() {
    let pool = GuardedPool::new();
    let block = allocate(&pool, 40, true);
    let Some((_, slot)) = pool.slot_at(block) else { panic!("the block has a slot") };
    slot.set_state(State::Ending);
    assert_eq!(pool.free(block, &site(2)), Freed::No(Misuse::DoubleFree { block_bytes: 48 }));
    let what = pool.judge(block, Touch::Write).map(|crime| crime.what);
    assert!(matches!(what, Some(Misuse::FreedBlock { .. })), "{what:?}");
    assert_eq!(pool.history(block).map(|history| history.freed), Some(None), "where is not known yet");
}
