use super::*;

#[test]
fn the_shell_has_no_obstacle_and_a_script_is_judged_by_its_interpreter() {
    let shell = find_command("sh").unwrap();
    assert_eq!(obstacle(&shell), None);
    assert_eq!(interpreter(b"#!/bin/sh -e\necho\n"), Some(PathBuf::from("/bin/sh")));
    assert_eq!(interpreter(b"#!/usr/bin/env -S sh\n"), Some(shell));
    assert_eq!(interpreter(b"\x7fELF"), None);
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let text = |name: &str| find_command(name).unwrap_err().to_string();
    assert!(text("no-such-command-here").contains("'no-such-command-here' was not found in PATH"));
    assert!(text("/no/such/file").contains("no such file"));
    assert!(text("/etc/passwd").contains("not an executable file"));
    assert!(text("").contains("'' was not found"));
    let status = |name: &str| find_command(name).unwrap_err().status;
    assert_eq!(["no-such-command-here", "/no/such/file", "/etc/passwd", "/etc"].map(status), [127, 127, 126, 126]);
}

#[test]
fn a_library_must_exist_be_shared_and_define_malloc() {
    let text = |path: &str| check_allocator_library(Path::new(path)).unwrap_err().to_string();
    assert!(text("/no/such/library.so").contains("cannot be read"));
    assert!(text("/etc/passwd").contains("not a shared object"));
    let own = std::env::current_exe().unwrap();
    assert!(text(own.to_str().unwrap()).contains("defines no malloc"));
}
