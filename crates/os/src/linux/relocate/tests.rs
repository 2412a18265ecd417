use super::*;
use freestone_base::units::PAGE_BYTES;

const MIB: usize = 1 << 20;

/// An address range with `n` MiB committed at its start, in one piece.
fn address_range(n: usize) -> *mut u8 {
    let address_range = Linux.propose_range(64 * MIB, 0).unwrap();
    // SAFETY: no code uses the address range yet.
    unsafe { Linux.commit(address_range, n * MIB, false).unwrap() };
    address_range
}

/// # Safety
/// - The MiB at `at` is mapped.
unsafe fn is_full_of(at: *mut u8, byte: u8) -> bool {
    // SAFETY: the MiB at `at` is mapped, by this function's contract.
    unsafe { core::slice::from_raw_parts(at, MIB) }.iter().all(|&it| it == byte)
}

#[test]
fn memory_moves_and_leaves_zero_behind() {
    let address_range = address_range(3);
    // SAFETY: ranges of this test's address range.
    unsafe {
        address_range.write_bytes(9, MIB);
        let to = address_range.add(2 * MIB);
        to.write_bytes(5, MIB);
        relocate(address_range, MIB, to).unwrap();
        assert!(is_full_of(address_range, 0) && is_full_of(to, 9));
        Linux.release(address_range, 3 * MIB).unwrap();
    }
}

/// The source is two mappings, because huge pages are refused in half of it: every kernel refuses to move that.
#[test]
fn a_source_of_several_mappings_is_refused_and_nothing_of_it_has_moved() {
    let address_range = address_range(3);
    // SAFETY: as above.
    unsafe {
        address_range.write_bytes(9, MIB);
        Linux.advise_huge(address_range, MIB / 2, false).unwrap();
        let to = address_range.add(2 * MIB);
        Linux.release(to, MIB).unwrap();
        assert_eq!(move_to(address_range, MIB, to), Err(Errno::FAULT));
        assert!(is_full_of(address_range, 9));
        assert_eq!(commit_again(to, MIB), Target::Committed);
        to.write_bytes(7, MIB);
        assert!(is_full_of(to, 7));
        Linux.release(address_range, 3 * MIB).unwrap();
    }
}

/// The first and the last piece are a mapping each, and the one between them two: it is copied.
#[test]
fn pieces_are_moved_or_copied_and_leave_zero_behind() {
    let address_range = address_range(3);
    // SAFETY: as above.
    unsafe {
        address_range.write_bytes(9, MIB);
        Linux.advise_huge(address_range.add(MIB / 4), MIB / 4, false).unwrap();
        let to = address_range.add(2 * MIB);
        to.write_bytes(5, MIB);
        Linux.release(to, MIB).unwrap();
        move_pieces(address_range, to, [0..MIB / 4, MIB / 4..MIB - PAGE_BYTES, MIB - PAGE_BYTES..MIB]).unwrap();
        assert!(is_full_of(address_range, 0) && is_full_of(to, 9));
        Linux.release(address_range, 3 * MIB).unwrap();
    }
}

/// Another thread maps something in the place of the second piece while the first is moved.
#[test]
fn pieces_that_were_moved_come_back_when_another_has_no_place() {
    let address_range = address_range(3);
    // SAFETY: as above.
    unsafe {
        address_range.write_bytes(9, MIB);
        let to = address_range.add(2 * MIB);
        Linux.release(to, MIB).unwrap();
        Linux.commit(to.add(MIB / 2), PAGE_BYTES, false).unwrap();
        let moved = move_pieces(address_range, to, [0..MIB / 4, MIB / 4..MIB, MIB..MIB]);
        assert_eq!(moved, Err(Target::Taken));
        assert!(is_full_of(address_range, 9));
        assert_eq!(Linux.commit(to, MIB / 4, false), Ok(()), "what was moved there is unmapped");
        Linux.release(address_range, 3 * MIB).unwrap();
    }
}

#[test]
fn pieces_are_cut_at_whole_huge_pages() {
    assert_eq!(pieces(10, 100, 16), [0..6, 6..86, 86..100]);
    assert_eq!(pieces(32, 32, 16), [0..0, 0..32, 32..32]);
    assert_eq!(pieces(17, 10, 16), [0..0, 0..0, 0..10]);
}

/// Another mapping is where the memory was to go.
#[test]
fn what_the_kernel_moved_elsewhere_is_brought_back() {
    let address_range = address_range(3);
    // SAFETY: as above; the kernel replaces nothing.
    unsafe {
        address_range.write_bytes(9, MIB);
        let elsewhere = move_near(address_range, MIB, address_range.add(MIB + PAGE_BYTES)).unwrap();
        assert!(elsewhere.addr().abs_diff(address_range.addr()) >= 3 * MIB && is_full_of(address_range, 0));
        bring_back(elsewhere, MIB, address_range);
        assert!(is_full_of(address_range, 9));
        assert_eq!(commit_again(address_range.add(2 * MIB), MIB), Target::Taken);
        Linux.release(address_range.add(2 * MIB), MIB).unwrap();
        assert_eq!(commit_again(address_range.add(2 * MIB), MIB), Target::Committed);
        Linux.release(address_range, 3 * MIB).unwrap();
    }
}
