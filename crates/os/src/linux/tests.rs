extern crate std;
use super::*;

#[test]
fn memory_goes_through_its_states() {
    let os = Linux;
    let bytes = 1 << 20;
    let address_range = (0..)
        .map_while(|attempt| os.propose_range(bytes, attempt))
        // SAFETY: the place was proposed just now.
        .find(|&at| unsafe { os.commit(at, bytes, false) }.is_ok())
        .unwrap();
    // SAFETY: committed above, used by this test alone.
    unsafe {
        assert_eq!(address_range.read(), 0);
        address_range.write(7);
        assert_eq!(os.commit(address_range, bytes, false), Err(Errno::EXIST));
        os.purge(address_range, bytes).unwrap();
        assert!(os.purge_zeroes());
        assert_eq!(address_range.read(), 0);
        address_range.write(9);
        let half = bytes / 2;
        os.relocate(address_range, half, address_range.add(half)).unwrap();
        assert_eq!((address_range.read(), address_range.add(half).read()), (0, 9));
        os.release(address_range, bytes).unwrap();
        os.commit(address_range, bytes, true).unwrap();
        os.release(address_range, bytes).unwrap();
    }
}

#[test]
fn address_ranges_are_proposed_at_different_places() {
    let places: std::collections::BTreeSet<usize> =
        (0..8).filter_map(|_| Linux.propose_range(1 << 40, 0)).map(|at| at.addr()).collect();
    assert!(places.len() > 1);
}

#[test]
fn address_ranges_are_proposed_wherever_they_fit_and_then_where_the_kernel_has_a_gap() {
    for (bytes, n_fitting) in [(RANGE_BYTES, 1), (1 << 40, 2), (1 << 36, 3)] {
        for attempt in 0..n_fitting * RANDOM_ATTEMPTS {
            let places = &PLACES[(attempt / RANDOM_ATTEMPTS) as usize];
            let at = Linux.propose_range(bytes, attempt).unwrap().addr();
            assert!(places.start <= at && at + bytes <= places.end, "{at:x} is not in {places:x?}");
        }
        assert!(Linux.propose_range(bytes, n_fitting * RANDOM_ATTEMPTS + 1).is_none());
    }
}

/// Runs `f` in a child of this process: it has one thread, so that no other thread maps or unmaps anything meanwhile.
fn in_a_process_of_its_own(f: impl FnOnce() -> bool) -> bool {
    let mut status = 0;
    // SAFETY: the child, a copy of a process of several threads, makes system calls and nothing else.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(i32::from(!f())),
            child => assert_eq!(libc::waitpid(child, &mut status, 0), child),
        }
    }
    status == 0
}

#[test]
fn what_the_kernel_places_next_is_not_in_a_range_in_a_gap() {
    assert!(in_a_process_of_its_own(|| {
        let bytes = 1 << 36;
        let Some(address_range) = find_gap(bytes) else { return false };
        // SAFETY: a new mapping, which ends with the process.
        let next = unsafe {
            mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        };
        next.is_ok_and(|next| next.addr().abs_diff(address_range.addr()) >= bytes)
    }));
}

/// The program has used up its address space: nothing can be mapped, and the answer is still found.
#[test]
fn whether_purging_zeroes_is_found_out_without_a_mapping() {
    assert!(in_a_process_of_its_own(|| {
        let bytes = 1 << 20;
        // SAFETY: the memory is this process's, which ends with the call.
        unsafe {
            let Some(at) = (0..)
                .map_while(|attempt| Linux.propose_range(bytes, attempt))
                .find(|&at| Linux.commit(at, bytes, false).is_ok())
            else {
                return false;
            };
            PURGED.store(UNKNOWN, Ordering::Relaxed);
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_AS, &none) == 0
                && !Linux.purge_zeroes()
                && Linux.purge(at, bytes).is_ok()
                && Linux.purge_zeroes()
                && at.read() == 0
        }
    }));
}

/// Too many files are open: whether there are huge pages cannot be read, and the next call reads again.
#[test]
fn whether_there_are_huge_pages_is_read_again_after_a_read_that_failed() {
    assert!(in_a_process_of_its_own(|| {
        let files = |most| libc::rlimit { rlim_cur: most, rlim_max: 4096 };
        // SAFETY: limits of this process, which ends with the call.
        unsafe {
            libc::setrlimit(libc::RLIMIT_NOFILE, &files(0)) == 0
                && huge_pages::on_request() == Err(Errno(libc::EMFILE))
                && Linux.huge_page_bytes() == 0
                && libc::setrlimit(libc::RLIMIT_NOFILE, &files(100)) == 0
                && Ok(Linux.huge_page_bytes()) == huge_pages::on_request()
        }
    }));
}

#[test]
fn the_clock_does_not_go_back() {
    let first = Linux.now_ms();
    assert!(Linux.now_ms() >= first);
}
