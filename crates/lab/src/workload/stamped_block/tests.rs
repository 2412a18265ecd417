use super::*;
use crate::workload::null_allocator::NullAllocator;
use crate::workload::tested_heap::Heap;

fn block(size: usize) -> Block {
    NullAllocator::new(64).allocate(size)
}

#[test]
fn a_stamp_is_read_back_from_both_ends_at_every_size() {
    for size in 0..40 {
        let block = block(size);
        block.stamp(0x0102_0304_0506_0708);
        let expected = if size == 0 { 0 } else { block.expected_ends(0x0102_0304_0506_0708) };
        assert_eq!(block.ends(), (expected, expected), "{size}");
    }
}

#[test]
fn a_stamp_that_one_byte_of_damage_changed_is_seen_at_its_end() {
    let block = block(24);
    block.stamp(7);
    block.fill_from(23, 9);
    assert_eq!(block.ends(), (7, 7 | 9 << 56));
}

#[test]
fn filling_from_an_offset_leaves_the_bytes_before_it() {
    let block = block(10);
    block.fill_from(0, 1);
    block.fill_from(6, 5);
    block.fill_from(10, 200);
    assert_eq!(block.sum(), 6 + 4 * 5);
    assert_eq!((block.byte(5), block.byte(6)), (1, 5));
}

#[test]
fn touching_writes_one_byte_in_every_step() {
    let block = block(10);
    block.fill_from(0, 0);
    block.touch(4, 3);
    assert_eq!((block.sum(), block.byte(8)), (9, 3));
}

#[test]
fn incrementing_wraps_around_in_the_first_byte_alone() {
    let block = block(2);
    block.fill_from(0, 0);
    block.increment_first(258);
    assert_eq!((block.byte(0), block.byte(1)), (2, 0));
}

#[test]
#[should_panic(expected = "offset 4 outside a block of 4 bytes")]
fn a_byte_outside_the_block_is_refused() {
    let _ = block(4).byte(4);
}
