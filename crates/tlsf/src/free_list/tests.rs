#![allow(unsafe_code)]

use crate::{Error, Policy, Tlsf, WithFooters};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

#[repr(align(16))]
struct Memory([MaybeUninit<u8>; 65536]);

/// The usable size of the block that a request for `bytes` gets where a free one of `free` usable bytes is the only one below the top.
fn served<P: Policy>(free: usize, bytes: usize) -> usize {
    let mut memory = Memory([const { MaybeUninit::zeroed() }; 65536]);
    let mut heap = Tlsf::<P>::with_policy();
    heap.add_region(&mut memory.0).unwrap();
    let [hole, _wall]: [NonNull<u8>; 2] = [free, 16].map(|bytes| heap.allocate(bytes, 16).unwrap());
    // SAFETY: no other code uses it.
    unsafe { heap.deallocate(hole) }.unwrap();
    assert_eq!(heap.allocate(bytes, 16), Ok(hole));
    assert_eq!(heap.check(), Ok(()));
    // SAFETY: as above.
    let usable = unsafe { heap.usable_size(hole) }.unwrap();
    // SAFETY: as above.
    unsafe { heap.deallocate(hole) }.unwrap();
    usable
}

#[test]
fn a_close_fit_is_handed_out_whole_and_other_blocks_are_cut() {
    use crate::Standard;
    // Lists of 64 bytes: the request's own, and three more.
    assert_eq!(served::<Standard>(2040 + 4 * 64 + 48, 2041 + 63), 2040 + 4 * 64 + 48);
    assert_eq!(served::<Standard>(2040 + 5 * 64, 2041 + 63), 2040 + 64);
    // A rest of 32 bytes could be a block.
    assert_eq!(served::<Standard>(1000 + 32, 1000), 1000 + 32);
    assert_eq!(served::<Standard>(200 + 32, 200), 200);
    assert_eq!(served::<Standard>(200 + 16, 200), 200 + 16);
    assert_eq!(served::<Standard>(20_472 + 32, 20_472), 20_472);
    assert_eq!(served::<WithFooters>(1000 + 32, 1000), 1000);
}

#[test]
fn the_last_resort_reports_a_damaged_block_and_does_not_follow_its_link() {
    let mut memory = Memory([const { MaybeUninit::zeroed() }; 65536]);
    let mut heap = Tlsf::new();
    heap.add_region(&mut memory.0).unwrap();
    // Two free blocks of the list 1024 .. 1056; the second to be freed heads it.
    let [large, _wall, small, _wall_2] = [1032, 16, 1016, 16].map(|bytes| heap.allocate(bytes, 16).unwrap());
    let rest = heap.stats().largest_free_bytes;
    heap.allocate(rest, 16).unwrap();
    // SAFETY: no other code uses it; the header and the link of a free block are inside the region.
    unsafe { heap.deallocate(large) }.unwrap();
    // SAFETY: as above.
    unsafe { heap.deallocate(small) }.unwrap();
    // SAFETY: as above.
    let header = unsafe { small.byte_sub(8) }.cast::<u64>();
    let link = small.cast::<*mut u8>();
    // SAFETY: as above.
    let (old_header, old_link) = (unsafe { header.read() }, unsafe { link.read() });
    // SAFETY: as above.
    unsafe { header.write(!old_header) };
    // SAFETY: as above.
    unsafe { link.write(core::ptr::without_provenance_mut(8)) };
    let error = heap.allocate(1032, 16).unwrap_err();
    assert!(matches!(error, Error::Overrun { .. } | Error::Damaged { .. }), "{error}");
    // SAFETY: as above.
    unsafe { header.write(old_header) };
    // SAFETY: as above.
    unsafe { link.write(old_link) };
    assert_eq!(heap.allocate(1032, 16), Ok(large), "repaired, and nothing had changed");
}
