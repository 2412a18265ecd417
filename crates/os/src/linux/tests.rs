extern crate std;
use super::*;

#[test]
fn memory_goes_through_its_states() {
    let os = Linux;
    let bytes = 1 << 20;
    let window = (0..ATTEMPTS)
        .filter_map(|attempt| os.propose_window(bytes, attempt))
        // SAFETY: the place was proposed just now.
        .find(|&at| unsafe { os.commit(at, bytes, false) }.is_ok())
        .unwrap();
    // SAFETY: committed above, used by this test alone.
    unsafe {
        assert_eq!(window.read(), 0);
        window.write(7);
        assert_eq!(os.commit(window, bytes, false), Err(Errno::EXIST));
        os.purge(window, bytes).unwrap();
        assert!(os.purge_zeroes());
        assert_eq!(window.read(), 0);
        window.write(9);
        let half = bytes / 2;
        os.relocate(window, half, window.add(half)).unwrap();
        assert_eq!((window.read(), window.add(half).read()), (0, 9));
        os.release(window, bytes).unwrap();
        os.commit(window, bytes, true).unwrap();
        os.release(window, bytes).unwrap();
    }
}

#[test]
fn windows_are_proposed_at_different_places() {
    let places: std::collections::BTreeSet<usize> =
        (0..8).filter_map(|_| Linux.propose_window(1 << 40, 0)).map(|at| at.addr()).collect();
    assert!(places.len() > 1);
}

#[test]
fn what_the_kernel_places_next_is_not_in_a_window_in_a_gap() {
    let bytes = 1 << 36;
    let window = Linux.propose_window(bytes, RANDOM_ATTEMPTS).unwrap();
    // SAFETY: a new mapping, unmapped again.
    unsafe {
        let next = mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE);
        let next = next.unwrap();
        assert!(next.addr().abs_diff(window.addr()) >= bytes, "{next:?} overlaps {window:?}");
        munmap(next, bytes).unwrap();
    }
}

#[test]
fn the_clock_does_not_go_back() {
    let first = Linux.now_ms();
    assert!(Linux.now_ms() >= first);
}
