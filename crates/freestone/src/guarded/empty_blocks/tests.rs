#![allow(unsafe_code)]
use super::*;
use std::vec::Vec;

/// Whether the kernel can read a byte of the address: it takes it for the first one of a path.
fn is_readable(at: usize) -> bool {
    let path = address::from_exposed::<u8>(at);
    crate::testing::kernel_can_read(path)
}

const FAMILY: u8 = 2;

#[test]
#[cfg_attr(miri, ignore = "asks the kernel what can be read")]
fn blocks_are_distinct_and_aligned_and_cannot_be_read() {
    let blocks = EmptyBlocks::new();
    let mut starts: Vec<_> = (0..1000).map(|_| blocks.allocate(FAMILY).unwrap().addr()).collect();
    assert!(starts.iter().all(|start| start.is_multiple_of(GRANULE_BYTES) && blocks.contains(*start)));
    // The kernel refuses to read from a closed address.
    assert!(starts.iter().all(|&start| !is_readable(start)));
    assert!(is_readable(starts.as_ptr().addr()), "the test can tell");
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), 1000);
    assert!(blocks.contains(starts[0] + CLOSED_BYTES - 1));
    assert!(![0, starts[0] - 1, starts[0] + CLOSED_BYTES, usize::MAX].iter().any(|&at| blocks.contains(at)));
}

#[test]
fn a_freed_block_is_used_again_after_all_others() {
    let blocks = EmptyBlocks::new();
    let first = blocks.allocate(FAMILY).unwrap();
    blocks.free(first.addr()).unwrap();
    for _ in 1..N_BLOCKS {
        let other = blocks.allocate(FAMILY).unwrap();
        assert_ne!(other, first);
        blocks.free(other.addr()).unwrap();
    }
    assert_eq!(blocks.allocate(FAMILY), Some(first));
}

#[test]
fn when_all_are_live_there_is_none_until_some_are_freed() {
    let blocks = EmptyBlocks::new();
    let all: Vec<_> = (0..N_BLOCKS).map(|_| blocks.allocate(FAMILY).unwrap()).collect();
    assert_eq!(blocks.allocate(FAMILY), None);
    all.iter().for_each(|block| blocks.free(block.addr()).unwrap());
    assert!(blocks.allocate(FAMILY).is_some());
}

#[test]
fn only_the_start_of_a_live_block_is_freed_and_only_once() {
    let blocks = EmptyBlocks::new();
    assert_eq!(blocks.free(16), Err(Misuse::Foreign), "nothing is mapped");
    let start = blocks.allocate(FAMILY).unwrap().addr();
    assert_eq!(blocks.family_of(start), Ok(FAMILY));
    assert_eq!(blocks.free(start + 1), Err(Misuse::Foreign));
    assert_eq!(blocks.free(start + GRANULE_BYTES), Err(Misuse::Foreign), "never allocated");
    assert_eq!(blocks.free(start), Ok(()));
    assert_eq!(blocks.free(start), Err(Misuse::DoubleFree { block_bytes: 0 }));
    assert_eq!(blocks.family_of(start), Err(Misuse::DoubleFree { block_bytes: 0 }));
}

#[test]
fn an_access_is_beside_a_live_block_and_after_the_free_of_a_freed_one() {
    let blocks = EmptyBlocks::new();
    let start = blocks.allocate(FAMILY).unwrap().addr();
    let touch = Touch::Write;
    let beside = Misuse::BesideBlock { block_bytes: 0, size: Some(0), offset: 3, touch };
    assert_eq!(blocks.judge(start + 3, touch), Some((beside, start)));
    blocks.free(start).unwrap();
    let freed = Misuse::FreedBlock { block_bytes: 0, size: Some(0), offset: 0, touch };
    assert_eq!(blocks.judge(start, touch), Some((freed, start)));
    assert_eq!(blocks.judge(start + GRANULE_BYTES, touch), None, "never allocated");
    assert_eq!(blocks.judge(start - 1, touch), None, "before the first");
}

#[test]
fn a_fork_holds_the_lock_from_before_until_after() {
    let blocks = EmptyBlocks::new();
    blocks.lock_for_fork();
    assert!(blocks.mapping.try_lock().is_none());
    // SAFETY: this thread took the lock above.
    blocks.unlock_after_fork(unsafe { Forker::new() });
    assert!(blocks.mapping.try_lock().is_some());
}
