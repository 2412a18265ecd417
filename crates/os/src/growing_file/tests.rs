extern crate std;

use super::*;
use crate::refused::with_refused;
use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::vec::Vec;
use std::{env, format, fs};

fn new_path(name: &str) -> (PathBuf, CString) {
    let path = env::temp_dir().join(format!("freestone-growing-{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let text = CString::new(path.to_str().unwrap()).unwrap();
    (path, text)
}

#[test]
fn what_is_written_to_a_part_is_in_the_file() {
    let (path, text) = new_path("part");
    let id = create(&text).unwrap();
    assert_eq!(create(&text), Err(Errno::EXIST));
    let at = open_again(&text, id).and_then(|file| file.map(8192, 4096)).unwrap();
    // SAFETY: the part is mapped, and this test's alone.
    unsafe { at.wrapping_add(7).write(b'x') };
    // SAFETY: as above; it is not used again.
    unsafe { unmap(at, 4096) };
    let bytes = fs::read(&path).unwrap();
    assert_eq!((bytes.len(), bytes[8192 + 7]), (12288, b'x'));
    assert!(bytes.iter().filter(|&&byte| byte != 0).count() == 1);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    fs::remove_file(path).unwrap();
}

/// As where OS pages have 16 or 64 KiB, and parts are multiples of 4 KiB.
#[test]
fn a_part_may_begin_and_end_within_an_os_page() {
    let (path, text) = new_path("within");
    let id = create(&text).unwrap();
    let parts = [(0, 100, b'a'), (100, 5000, b'b'), (5100, 64, b'c')];
    let mapped = parts.map(|(offset, bytes, byte)| {
        let at = open_again(&text, id).and_then(|file| file.map(offset, bytes)).unwrap();
        // SAFETY: the part is mapped, and this test's alone.
        unsafe { at.write_bytes(byte, bytes) };
        (at, bytes)
    });
    for (at, bytes) in mapped {
        // SAFETY: it is not used again.
        unsafe { unmap(at, bytes) };
    }
    let expected: Vec<_> = parts.iter().flat_map(|&(_, bytes, byte)| std::iter::repeat_n(byte, bytes)).collect();
    assert_eq!(fs::read(&path).unwrap(), expected);
    fs::remove_file(path).unwrap();
}

#[test]
fn a_part_is_mapped_although_each_attempt_to_allocate_it_is_refused_or_interrupted() {
    for errno in [libc::EOPNOTSUPP, libc::EINTR] {
        let (path, text) = new_path("interrupted");
        let id = create(&text).unwrap();
        with_refused(libc::SYS_fallocate, errno, || {
            for offset in [0, 4096] {
                let at = open_again(&text, id).and_then(|file| file.map(offset, 4096)).unwrap();
                // SAFETY: the part is mapped, and this test's alone.
                unsafe { at.write(b'x') };
                // SAFETY: as above; it is not used again.
                unsafe { unmap(at, 4096) };
            }
        });
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.is_empty() || (bytes.len(), bytes[0], bytes[4096]) == (8192, b'x', b'x'), "{errno}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn what_is_written_as_a_whole_is_in_the_file_and_makes_it_longer() {
    let (path, text) = new_path("whole");
    let id = create(&text).unwrap();
    open_again(&text, id).and_then(|file| file.write(5, b"12345")).unwrap();
    open_again(&text, id).and_then(|file| file.write(2, b"abc")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"\0\0abc12345");
    // No file is that long.
    assert!(open_again(&text, id).and_then(|file| file.write(1 << 62, b"x")).is_err());
    fs::remove_file(path).unwrap();
}

#[test]
fn another_file_of_the_same_name_is_left_alone() {
    let (path, text) = new_path("other");
    let id = create(&text).unwrap();
    fs::rename(&path, path.with_extension("kept")).unwrap();
    fs::write(&path, b"another").unwrap();
    assert_eq!(open_again(&text, id).and_then(|file| file.map(0, 4096)), Err(Errno::INVAL));
    assert_eq!(open_again(&text, id).and_then(|file| file.write(0, b"x")), Err(Errno::INVAL));
    assert_eq!(fs::read(&path).unwrap(), b"another");
    fs::remove_file(path.with_extension("kept")).unwrap();
    fs::remove_file(path).unwrap();
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let id = FileId::of_numbers([0, 0]);
    assert!(open_again(c"/dev/full", id).and_then(|file| file.map(0, 4096)).is_err());
    assert!(create(c"/nowhere/at/all").is_err());
}

#[test]
fn all_is_written_although_a_write_takes_a_part_or_is_interrupted() {
    let (mut answers, mut written) = ([Ok(2), Err(KernelErrno::INTR), Ok(3)].into_iter(), Vec::new());
    let write = |rest: &[u8]| answers.next().unwrap().inspect(|&n| written.extend_from_slice(&rest[..n]));
    assert_eq!(write_whole(b"whole", write), Ok(()));
    assert_eq!((written.as_slice(), answers.next()), (&b"whole"[..], None));
    assert_eq!(write_whole(b"", |_| panic!("there is nothing to write")), Ok(()));
}

#[test]
fn a_write_that_takes_nothing_is_a_full_disk_and_an_error_is_passed_on() {
    for (answer, errno) in [(Ok(0), libc::ENOSPC), (Err(KernelErrno::FBIG), libc::EFBIG)] {
        let mut n_calls = 0;
        let write = |_: &[u8]| {
            n_calls += 1;
            if n_calls == 1 { Ok(1) } else { answer }
        };
        assert_eq!((write_whole(b"text", write), n_calls), (Err(Errno(errno)), 2));
    }
}

#[test]
fn zeros_are_written_to_their_part_of_a_file_and_nowhere_else() {
    for (start, end) in [(0, 10_000), (3, 4099), (7, 8), (9, 9)] {
        let (path, text) = new_path("zeros");
        fs::write(&path, [1; 10_001]).unwrap();
        write_zeros(&open(text.as_c_str(), OFlags::RDWR, Mode::empty()).unwrap(), start..end).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 10_001);
        let are_right = bytes.iter().zip(0..).all(|(&byte, at)| (byte == 0) == (start..end).contains(&at));
        assert!(are_right, "{start}..{end}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn of_a_part_that_is_new_all_is_written_and_nothing_of_other_parts() {
    assert_eq!((missing(0..4096, 0), missing(0..4096, 100)), (0..4096, 100..4096));
    assert!(missing(0..4096, 4096).is_empty() && missing(0..4096, 70_000).is_empty(), "the first part stays");
    // The file ends before the part, in it, or behind it.
    for len in [4096, 8192, 10_000, 1 << 20] {
        assert_eq!(missing(8192..12_288, len), 8192..12_288, "{len}");
    }
}

#[test]
fn a_pipe_whose_reader_has_gone_is_an_error_and_no_signal() {
    // SAFETY: without a new stack, the child goes on here with a copy of everything; it ends without running anything else.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32;
    if child == 0 {
        // SAFETY: in the child, which has one thread.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let mut ends = [0; 2];
        // SAFETY: the call writes two descriptors.
        unsafe { libc::pipe(ends.as_mut_ptr()) };
        // SAFETY: closes one of them.
        unsafe { libc::close(ends[0]) };
        let written = crate::write_descriptor(ends[1], b"text");
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(written != Err(Errno(libc::EPIPE)))) };
    }
    let mut status = -1;
    // SAFETY: waits for this test's child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}
