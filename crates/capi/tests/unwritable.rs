//! Programs that can write no file: each option that writes one says so once, with the reason, and the program ends as it would.

mod harness;

use harness::{Program, WAYS, Way, scratch};
use std::fs;
use std::process::{Command, Output};

/// Options that write a file, and the beginning of what is said if it cannot be written.
const OPTIONS: [(&str, &str); 5] = [
    ("REPORT=file", "cannot write the report to "),
    ("RECORD=file", "cannot record to "),
    ("LIVE=file", "option live: cannot create "),
    ("HEAP_PROFILE=on FREESTONE_HEAP_PROFILE_FILE=file", "cannot write the heap profile to file: "),
    ("HEAP_PROFILE=ready XDG_RUNTIME_DIR=$PWD", "heap_profile=ready: cannot create "),
];

/// Checks that a program with this option ended as without it, and said why there is no file.
fn says(output: &Output, beginning: &str, reason: &str, case: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{case}: {}, {said}", output.status);
    assert!(said.lines().count() == 1 && said.contains(beginning), "{case}: {said}");
    assert!(said.contains(reason), "{case}: {said}");
}

/// A new folder, and the program started in it by a shell after `setup`, with an option.
fn command(program: &Program, folder: &str, option: &str, setup: &str) -> Command {
    let folder = scratch("unwritable").join(folder);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    program.command_after(&format!("cd '{}'; {setup}; export FREESTONE_{option}", folder.display()), "")
}

/// A name is bytes for the system, and for the library. Its letters are replaced, which makes this one too long.
#[test]
fn a_name_that_is_not_utf_8_is_taken_and_one_that_its_letters_make_too_long_is_said_to_be() {
    let long = "/%p%p%p%p".repeat(100);
    let program = Program::new("unwritable.c", Way::Preload);
    for option in ["REPORT=", "RECORD=", "HEAP_PROFILE=on FREESTONE_HEAP_PROFILE_FILE="] {
        let mut named = command(&program, "named", &format!("{option}\"$(printf 'a\\377')\""), ":");
        let output = named.output().expect("it runs");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(7), &b""[..]), "{option}: {output:?}");
        let files = fs::read_dir(scratch("unwritable").join("named")).expect("the folder exists").flatten();
        let names: Vec<_> = files.map(|file| file.file_name().into_encoded_bytes()).collect();
        assert_eq!(names, [b"a\xff"], "{option}");
    }
    for (option, beginning) in [
        ("LIVE=", "option live: cannot create ?: "),
        ("HEAP_PROFILE=on FREESTONE_HEAP_PROFILE_FILE=", "cannot write the heap profile to ?: "),
    ] {
        let output = command(&program, "long", &format!("{option}{long}"), ":").output().expect("it runs");
        says(&output, beginning, "(the name is too long)", option);
    }
}

#[test]
fn at_a_limit_of_no_bytes_no_signal_ends_the_program() {
    for way in WAYS {
        let program = Program::new("unwritable.c", way);
        for (option, beginning) in OPTIONS {
            let output = command(&program, &format!("limit-{way:?}"), option, "ulimit -f 0")
                .output()
                .expect("a shell can be run");
            says(&output, beginning, "error 27 (a limit on the length of files)", &format!("{way:?} {option}"));
        }
    }
}

#[test]
fn on_a_read_only_file_system_the_program_goes_on() {
    let can_mount = Command::new("unshare").args(["--mount", "mount", "--bind", "/tmp", "/tmp"]).output();
    if !can_mount.is_ok_and(|output| output.status.success()) {
        println!("skipped: file systems cannot be mounted");
        return;
    }
    for way in WAYS {
        let program = Program::new("unwritable.c", way);
        for (option, beginning) in OPTIONS {
            let read_only = r#"mount --bind "$PWD" "$PWD"; mount -o remount,bind,ro "$PWD"; cd "$PWD""#;
            let shell = command(&program, &format!("read-only-{way:?}"), option, read_only);
            let mut command = Command::new("unshare");
            command.arg("--mount").arg(shell.get_program()).args(shell.get_args());
            let output = command.output().expect("unshare can be run");
            says(&output, beginning, "error 30 (a read-only file system)", &format!("{way:?} {option}"));
        }
    }
}

#[test]
fn no_program_waits_for_the_reader_of_a_pipe() {
    for way in WAYS {
        let program = Program::new("unwritable.c", way);
        for (option, beginning) in [OPTIONS[0], OPTIONS[3]] {
            let shell = command(&program, &format!("pipe-{way:?}"), option, "mkfifo file");
            let mut command = Command::new("timeout");
            command.arg("20").arg(shell.get_program()).args(shell.get_args());
            let output = command.output().expect("timeout can be run");
            says(&output, beginning, "error 6 (a pipe that nobody reads", &format!("{way:?} {option}"));
        }
    }
}
