#![allow(unsafe_code)]

use super::*;
use crate::mapping::index_to_search;
use crate::{Guarded, Policy, Tlsf};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// The most bytes that a block of a near list, given to a request for one of `need`, has over it.
fn most_slack<const SECOND: usize>(need: usize) -> usize {
    let least = index_to_search(need, SECOND);
    (need..2 * need + 64)
        .step_by(GRANULE)
        .take_while(|&size| {
            let index = index_of(size, SECOND);
            index < least || FreeLists::<20, SECOND>::is_near(least, index)
        })
        .last()
        .map_or(0, |size| size - need)
}

fn slack_is_bounded<const SECOND: usize>() {
    let most = if cfg!(miri) { 1 << 10 } else { 40_000 };
    for need in (LEAST_BLOCK_BYTES..most).step_by(GRANULE) {
        let (slack, lists_apart) = (most_slack::<SECOND>(need), need.next_power_of_two() / SECOND);
        if slack >= lists_apart.max(GRANULE) {
            assert!(slack * 32 <= need * 5 && slack < 512 && need < 16 << 10, "{slack} over {need}, {SECOND} lists");
        }
    }
}

#[test]
fn a_near_block_is_less_than_a_sixth_and_less_than_512_bytes_longer() {
    slack_is_bounded::<32>();
    slack_is_bounded::<16>();
    slack_is_bounded::<8>();
    slack_is_bounded::<4>();
    slack_is_bounded::<2>();
}

#[repr(align(16))]
struct Memory([MaybeUninit<u8>; 65536]);

/// The usable size of the block that a request for `bytes` gets where a free one of `free` usable bytes is the only one below the top.
fn served<P: Policy>(free: usize, bytes: usize) -> usize {
    let mut memory = Memory([const { MaybeUninit::zeroed() }; 65536]);
    let mut heap = Tlsf::<P>::with_policy();
    heap.add_region(&mut memory.0).unwrap();
    let [hole, _wall]: [NonNull<u8>; 2] = [free, 16].map(|bytes| heap.allocate(bytes, 16).unwrap());
    // SAFETY: used by nobody.
    unsafe {
        heap.deallocate(hole).unwrap();
        assert_eq!(heap.allocate(bytes, 16), Ok(hole));
        assert_eq!(heap.check(), Ok(()));
        let usable = heap.usable_size(hole).unwrap();
        heap.deallocate(hole).unwrap();
        usable
    }
}

#[test]
fn a_near_block_is_given_whole_and_others_are_cut() {
    use crate::Standard;
    // Lists of 64 bytes: the request's own, and three more.
    assert_eq!(served::<Standard>(2040 + 4 * 64 + 48, 2041 + 63), 2040 + 4 * 64 + 48);
    assert_eq!(served::<Standard>(2040 + 5 * 64, 2041 + 63), 2040 + 64);
    // A rest of 32 bytes could be a block.
    assert_eq!(served::<Standard>(1000 + 32, 1000), 1000 + 32);
    assert_eq!(served::<Standard>(200 + 32, 200), 200);
    assert_eq!(served::<Standard>(200 + 16, 200), 200 + 16);
    assert_eq!(served::<Standard>(20_472 + 32, 20_472), 20_472);
    assert_eq!(served::<Guarded>(1000 + 32, 1000), 1000);
}
