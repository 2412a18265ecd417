extern crate std;
use super::*;
use crate::test_range::TestRange;
use freestone_testkit::again;
use std::os::fd::AsRawFd;

#[test]
fn memory_goes_through_its_states() {
    let (bytes, half) = (1 << 20, 1 << 19);
    let range = TestRange::new(&Linux, bytes, bytes);
    assert_eq!(range.read(0), 0);
    range.write(0, 7);
    assert_eq!(range.commit(0..bytes, false), Err(Errno::EXIST));
    range.purge(0..bytes).unwrap();
    assert!(Linux.purge_zeroes());
    assert_eq!(range.read(0), 0);
    range.write(0, 9);
    // The emulator moves nothing.
    if !again::is_emulated() {
        range.relocate(0..half, half).unwrap();
        assert_eq!((range.read(0), range.read(half)), (0, 9));
    }
    range.release(0..bytes).unwrap();
    range.commit(0..bytes, true).unwrap();
    range.release(0..bytes).unwrap();
}

/// Whether the kernel can read the byte at an offset: a system call fails where an access by this process would fault.
fn is_readable(range: &TestRange<'_, Linux>, offset: usize) -> bool {
    let (_read, write) = std::io::pipe().expect("a pipe");
    // SAFETY: `write` only reads one byte, and fails if that cannot be read.
    unsafe { libc::write(write.as_raw_fd(), range.at(offset).cast(), 1) == 1 }
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no guards")]
fn no_markers_are_put_where_advice_is_taken_that_no_kernel_knows() {
    let bytes = 1 << 20;
    let range = TestRange::new(&Linux, bytes, bytes);
    range.write(0, 7);
    let _ = range.guard(bytes / 2..bytes, GuardBy::Marker);
    assert!(guards::REFUSES_UNKNOWN.get().is_some());
    assert_eq!(range.read(0), 7);
    assert!(in_a_process_of_its_own(|| {
        guards::REFUSES_UNKNOWN.set(false);
        range.guard(0..bytes / 2, GuardBy::Marker) == Err(Errno::INVAL) && range.read(0) == 7
    }));
    range.release(0..bytes).unwrap();
}

#[test]
fn guarded_memory_cannot_be_read_until_the_guard_ends_whatever_is_purged_meanwhile() {
    for by in [GuardBy::Marker, GuardBy::Rights] {
        let (page, bytes) = (process::os_page_bytes(), 1 << 20);
        let range = TestRange::new(&Linux, bytes, bytes);
        let guard = bytes / 2..bytes / 2 + page;
        match range.guard(guard.clone(), by) {
            Ok(()) => {}
            Err(errno) => {
                assert_eq!((by, errno), (GuardBy::Marker, Errno::INVAL), "only markers may be missing");
                continue;
            }
        }
        range.write(guard.start - 1, 1);
        range.write(guard.end, 1);
        assert!(!is_readable(&range, guard.start) && !is_readable(&range, guard.end - 1), "{by:?}");
        // SAFETY: the range is this test's, and its contents are not needed.
        let _ = unsafe { Linux.purge_lazily(range.at(0), bytes) };
        range.purge(0..bytes).unwrap();
        assert!(!is_readable(&range, guard.start), "{by:?} has gone with a purge");
        assert!(in_a_process_of_its_own(|| !is_readable(&range, guard.start)), "{by:?} has gone with a fork");
        range.unguard(guard.clone(), by).unwrap();
        assert_eq!(range.read(guard.start), 0);
        range.write(guard.start, 1);
        range.guard(guard.clone(), by).unwrap();
        range.release(0..bytes).unwrap();
        range.commit(0..bytes, false).unwrap();
        assert_eq!(range.read(guard.start), 0, "{by:?} has outlived its mapping");
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
pub(crate) fn in_a_process_of_its_own(f: impl FnOnce() -> bool) -> bool {
    let mut status = 0;
    // SAFETY: the child, a copy of a process of several threads, makes system calls and nothing else.
    match unsafe { libc::fork() } {
        // SAFETY: ends the child at once, without what the parent has registered for its own end.
        0 => unsafe { libc::_exit(i32::from(!f())) },
        // SAFETY: `status` has room for the answer.
        child => assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child),
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

/// A limit for this process. (The type of a resource depends on the C library.)
fn limit(most: u64) -> libc::rlimit {
    libc::rlimit { rlim_cur: most, rlim_max: most.max(4096) }
}

pub(super) fn limit_memory(most: u64) -> bool {
    // The hard limit stays as it is, so that this one can be raised again.
    let limit = libc::rlimit { rlim_cur: most, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call reads one `rlimit`.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) == 0 }
}

fn limit_files(most: u64) -> bool {
    // SAFETY: the call reads one `rlimit`.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit(most)) == 0 }
}

/// Too many files are open: whether there are huge pages cannot be read, and the next call reads again.
#[test]
fn whether_there_are_huge_pages_is_read_again_after_a_read_that_failed() {
    assert!(in_a_process_of_its_own(|| {
        limit_files(0)
            && huge_pages::on_request() == Err(Errno(libc::EMFILE))
            && Linux.huge_page_bytes() == 0
            && limit_files(100)
            && Ok(Linux.huge_page_bytes()) == huge_pages::on_request()
    }));
}

#[test]
fn the_clock_does_not_go_back() {
    let first = Linux.now_ms();
    assert!(Linux.now_ms() >= first);
}
