#![allow(unsafe_code)]
extern crate std;

use super::*;

#[test]
fn a_limit_file_is_a_number_or_no_limit() {
    assert_eq!(parse_limit(b"268435456\n"), Some(268_435_456));
    assert_eq!(parse_limit(b"max\n"), None);
    assert_eq!(parse_limit(b"9223372036854771712\n"), None);
    assert_eq!(parse_limit(b""), None);
    assert_eq!(parse_limit(b"-1"), None);
}

#[test]
fn asking_for_the_limit_of_this_process_answers_whatever_the_machine_has() {
    assert_ne!(memory_limit_bytes().unwrap(), Some(0));
}

#[test]
fn a_group_with_too_long_a_name_has_the_limit_of_its_parents() {
    let root = std::env::temp_dir().join(std::format!("freestone-cgroup-test-{}", std::process::id()));
    std::fs::create_dir_all(root.join("outer/inner")).unwrap();
    std::fs::write(root.join("outer/memory.max"), "8192\n").unwrap();
    std::fs::write(root.join("outer/inner/memory.max"), "max\n").unwrap();
    let smallest = |path: &str| {
        let mut found = Found { smallest: UNLIMITED_BYTES, failed: None };
        found.look_on_path(root.as_os_str().as_encoded_bytes(), path.as_bytes(), b"/memory.max");
        found.limit()
    };
    assert_eq!(smallest("/outer/inner"), Some(8192));
    assert_eq!(smallest(&std::format!("/outer/{}", "x".repeat(NAME_BYTES))), Some(8192));
    assert_eq!(smallest("/elsewhere"), None);
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn a_process_without_file_descriptors_is_told_to_ask_again() {
    // SAFETY: the child calls functions that take no lock, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is a valid one, of this child.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const none) };
        let passes = memory_limit_bytes().is_err_and(Errno::is_passing);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!passes)) };
    }
    let mut status = -1;
    // SAFETY: the status is this test's.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}
