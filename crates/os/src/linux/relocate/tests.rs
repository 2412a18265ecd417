use super::*;
use freestone_base::units::PAGE_BYTES;

const MIB: usize = 1 << 20;

/// A window with `n` MiB committed at its start, in one piece.
fn window(n: usize) -> *mut u8 {
    let window = Linux.propose_window(64 * MIB, 0).unwrap();
    // SAFETY: no code uses the window yet.
    unsafe { Linux.commit(window, n * MIB, false).unwrap() };
    window
}

/// # Safety
/// - The MiB at `at` is mapped.
unsafe fn is_full_of(at: *mut u8, byte: u8) -> bool {
    // SAFETY: the MiB at `at` is mapped, by this function's contract.
    unsafe { core::slice::from_raw_parts(at, MIB) }.iter().all(|&it| it == byte)
}

#[test]
fn memory_moves_and_leaves_zero_behind() {
    let window = window(3);
    // SAFETY: ranges of this test's window.
    unsafe {
        window.write_bytes(9, MIB);
        let to = window.add(2 * MIB);
        to.write_bytes(5, MIB);
        relocate(window, MIB, to).unwrap();
        assert!(is_full_of(window, 0) && is_full_of(to, 9));
        Linux.release(window, 3 * MIB).unwrap();
    }
}

/// The source is two mappings, because huge pages are refused in half of it: every kernel refuses to move that.
#[test]
fn a_source_of_several_mappings_is_refused_and_nothing_of_it_has_moved() {
    let window = window(3);
    // SAFETY: as above.
    unsafe {
        window.write_bytes(9, MIB);
        Linux.advise_huge(window, MIB / 2, false).unwrap();
        let to = window.add(2 * MIB);
        Linux.release(to, MIB).unwrap();
        assert_eq!(move_to(window, MIB, to), Err(Errno::FAULT));
        assert!(is_full_of(window, 9));
        assert_eq!(commit_again(to, MIB), Target::Committed);
        to.write_bytes(7, MIB);
        assert!(is_full_of(to, 7));
        Linux.release(window, 3 * MIB).unwrap();
    }
}

/// The first and the last piece are a mapping each, and the one between them two: it is copied.
#[test]
fn pieces_are_moved_or_copied_and_leave_zero_behind() {
    let window = window(3);
    // SAFETY: as above.
    unsafe {
        window.write_bytes(9, MIB);
        Linux.advise_huge(window.add(MIB / 4), MIB / 4, false).unwrap();
        let to = window.add(2 * MIB);
        to.write_bytes(5, MIB);
        Linux.release(to, MIB).unwrap();
        move_pieces(window, to, [0..MIB / 4, MIB / 4..MIB - PAGE_BYTES, MIB - PAGE_BYTES..MIB]).unwrap();
        assert!(is_full_of(window, 0) && is_full_of(to, 9));
        Linux.release(window, 3 * MIB).unwrap();
    }
}

/// Another thread maps something in the place of the second piece while the first is moved.
#[test]
fn pieces_that_were_moved_come_back_when_another_has_no_place() {
    let window = window(3);
    // SAFETY: as above.
    unsafe {
        window.write_bytes(9, MIB);
        let to = window.add(2 * MIB);
        Linux.release(to, MIB).unwrap();
        Linux.commit(to.add(MIB / 2), PAGE_BYTES, false).unwrap();
        let moved = move_pieces(window, to, [0..MIB / 4, MIB / 4..MIB, MIB..MIB]);
        assert_eq!(moved, Err(Target::Taken));
        assert!(is_full_of(window, 9));
        assert_eq!(Linux.commit(to, MIB / 4, false), Ok(()), "what was moved there is unmapped");
        Linux.release(window, 3 * MIB).unwrap();
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
    let window = window(3);
    // SAFETY: as above; the kernel replaces nothing.
    unsafe {
        window.write_bytes(9, MIB);
        let elsewhere = move_near(window, MIB, window.add(MIB + PAGE_BYTES)).unwrap();
        assert!(elsewhere.addr().abs_diff(window.addr()) >= 3 * MIB && is_full_of(window, 0));
        bring_back(elsewhere, MIB, window);
        assert!(is_full_of(window, 9));
        assert_eq!(commit_again(window.add(2 * MIB), MIB), Target::Taken);
        Linux.release(window.add(2 * MIB), MIB).unwrap();
        assert_eq!(commit_again(window.add(2 * MIB), MIB), Target::Committed);
        Linux.release(window, 3 * MIB).unwrap();
    }
}
