//! Blocks of another thread that are freed again, or written to, while they are buffered.
use super::*;

/// Sizes of which three blocks stay in the remote-free buffer.
const BUFFERED_SIZES: [usize; 3] = [8, 48, 4096];

/// Asserts that a write to this free block was reported, and nothing else.
fn assert_written(block: *mut u8, bytes: usize) {
    let what = Misuse::link_written(block_bytes(class_of(bytes)));
    assert_eq!(seen::take(), [(what, block.addr())]);
}

#[test]
fn a_block_that_two_others_free_is_reported_when_the_first_hands_it_over() {
    for is_drained in [false, true] {
        let world = world();
        let (owner, first, second) = (world.heap(), world.heap(), world.heap());
        let all = blocks(owner, 48, 5);
        all[..3].iter().for_each(|&block| free(first, block));
        free(second, all[1]);
        assert_eq!(seen::take(), []);
        if is_drained {
            drain::drain(owner);
        }
        route::send_all(first);
        assert_seen(all[1], 48);
        drain::drain(owner);
        assert_eq!(seen::take(), []);
        assert_eq!(world.check(), Ok(()));
    }
}

/// The owner's second free and the allocation behind it happen while the block is buffered: the block stays the program's.
#[test]
fn a_buffered_block_that_its_owner_frees_and_hands_out_again_is_not_handed_out_twice() {
    with_two_heaps(&BUFFERED_SIZES, |owner, other, all, bytes| {
        all[..3].iter().for_each(|&block| free(other, block));
        free(owner, all[1]);
        assert_eq!(owner.allocate(bytes, 1).start, all[1]);
        assert_eq!(seen::take(), []);
        route::send_all(other);
        assert_written(all[1], bytes);
        drain::drain(owner);
        let next = blocks(owner, bytes, 4);
        assert!(next.contains(&all[0]) && next.contains(&all[2]), "the other blocks of the batch have arrived");
        assert!(!next.contains(&all[1]));
        assert_eq!(seen::take(), []);
    });
}

#[test]
fn a_buffered_block_that_is_written_to_is_reported_when_it_is_handed_over_and_the_others_arrive() {
    for word in [0, 1] {
        with_two_heaps(&BUFFERED_SIZES, |owner, other, all, bytes| {
            all[..3].iter().for_each(|&block| free(other, block));
            write(all[1], word, 0x4141);
            route::send_all(other);
            assert_written(all[1], bytes);
            drain::drain(owner);
            let next = blocks(owner, bytes, 4);
            assert!(next.contains(&all[0]) && next.contains(&all[2]));
            assert_eq!(seen::take(), []);
        });
    }
}

#[test]
fn a_block_of_another_freed_twice_is_reported_while_it_is_buffered() {
    with_two_heaps(&SIZES, |owner, other, all, bytes| {
        free(other, all[2]);
        free(other, all[2]);
        assert_seen(all[2], bytes);
        route::send_all(other);
        drain::drain(owner);
        assert_eq!(seen::take(), []);
    });
}

#[test]
fn a_block_of_another_freed_twice_with_a_write_between_is_handed_over_once() {
    with_two_heaps(&SIZES, |owner, other, all, _| {
        free(other, all[2]);
        write(all[2], 1, 0);
        free(other, all[2]);
        route::send_all(other);
        assert_eq!(seen::take().len(), 1);
        drain::drain(owner);
        assert_eq!(seen::take(), []);
    });
}
