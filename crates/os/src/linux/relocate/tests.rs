use super::*;
use freestone_base::units::PAGE_BYTES;

const MIB: usize = 1 << 20;

/// A window with `n` MiB committed at its start, in one piece.
fn window(n: usize) -> *mut u8 {
    let window = Linux.propose_window(64 * MIB, 0).unwrap();
    // SAFETY: nobody uses the window yet.
    unsafe { Linux.commit(window, n * MIB, false).unwrap() };
    window
}

/// # Safety
/// - The MiB at `at` is mapped.
unsafe fn is_full_of(at: *mut u8, byte: u8) -> bool {
    // SAFETY: the caller's promise.
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

/// The source is two mappings, for huge pages are refused in half of it: no kernel may lose anything of it, nor the target.
#[test]
fn a_source_of_several_mappings_is_refused_and_both_ranges_are_as_good_as_before() {
    let window = window(3);
    // SAFETY: as above.
    unsafe {
        window.write_bytes(9, MIB);
        Linux.advise_huge(window, MIB / 2, false).unwrap();
        let to = window.add(2 * MIB);
        to.write_bytes(5, MIB);
        let refused = relocate(window, MIB, to).unwrap_err();
        assert_eq!(refused, NotMoved { errno: Errno(libc::EFAULT), target: Target::Committed });
        assert!(is_full_of(window, 9));
        to.write_bytes(7, MIB);
        assert!(is_full_of(to, 7));
        Linux.release(window, 3 * MIB).unwrap();
    }
}

/// Somebody else's mapping is where the memory was to go.
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
