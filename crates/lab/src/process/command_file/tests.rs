use super::*;
use crate::scratch_file::ScratchFile;

#[test]
fn a_command_that_cannot_be_run_is_named_with_the_status_of_a_shell() {
    let text = |name: &str| find(name).unwrap_err().to_string();
    assert!(text("no-such-command-here").contains("'no-such-command-here' was not found in PATH"));
    assert!(text("/no/such/file").contains("no such file"));
    assert!(text("/etc/passwd").contains("not an executable file"));
    assert!(text("").contains("'' was not found"));
    let status = |name: &str| find(name).unwrap_err().status;
    assert_eq!(["no-such-command-here", "/no/such/file", "/etc/passwd", "/etc"].map(status), [127, 127, 126, 126]);
}

#[test]
fn a_file_may_be_a_script_unless_it_is_a_program_or_has_a_zero_in_its_first_line() {
    let file = ScratchFile::new("script-test").unwrap();
    for (content, expected) in
        [(&b"echo hello\n"[..], true), (b"", true), (b"\x7fELF rest", false), (b"a\0b\n", false), (b"a\n\0", true)]
    {
        fs::write(file.path(), content).unwrap();
        assert_eq!(may_be_script(file.path()), expected, "{content:?}");
    }
    assert!(!may_be_script(Path::new("/no/such/file")));
}
