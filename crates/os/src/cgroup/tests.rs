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
    assert_ne!(memory_limit_bytes(), Some(0));
}

#[test]
fn a_group_with_too_long_a_name_has_the_limit_of_its_parents() {
    let root = std::env::temp_dir().join(std::format!("freestone-cgroup-test-{}", std::process::id()));
    std::fs::create_dir_all(root.join("outer/inner")).unwrap();
    std::fs::write(root.join("outer/memory.max"), "8192\n").unwrap();
    std::fs::write(root.join("outer/inner/memory.max"), "max\n").unwrap();
    let smallest = |path: &str| smallest_on_path(root.as_os_str().as_encoded_bytes(), path.as_bytes(), b"/memory.max");
    assert_eq!(smallest("/outer/inner"), Some(8192));
    assert_eq!(smallest(&std::format!("/outer/{}", "x".repeat(NAME_BYTES))), Some(8192));
    assert_eq!(smallest("/elsewhere"), None);
    std::fs::remove_dir_all(&root).unwrap();
}
