//! The option `live`: a page of statistics in a file.

mod harness;

use harness::{Program, WAYS, Way, expect_silent, scratch, text};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

/// An empty folder of a test's own, `name`, and a command that keeps its pages there.
fn command(program: &Program, part: &str, name: &str) -> (Command, PathBuf) {
    let folder = scratch(&format!("live-{name}"));
    for file in fs::read_dir(&folder).expect("the folder exists").flatten() {
        fs::remove_file(file.path()).expect("ours");
    }
    let mut command = program.command();
    command.arg(part).arg(&folder).env("FREESTONE_LIVE", folder.join("%p.live"));
    (command, folder)
}

/// Bytes of a page.
const PAGE_BYTES: usize = heap::door::live::PAGE_WORDS * 8;

fn is_empty(folder: &PathBuf) -> bool {
    fs::read_dir(folder).expect("the folder exists").next().is_none()
}

fn run(part: &str) {
    for way in WAYS {
        let (mut command, folder) = command(&Program::new("live.c", way), part, &format!("{part}-{way:?}"));
        expect_silent(&mut command, way);
        assert!(is_empty(&folder), "{way:?}: a page was left in {}", folder.display());
    }
}

#[test]
fn the_page_is_its_users_alone_shows_what_is_live_and_is_removed_at_exit() {
    run("kept");
}

#[test]
fn a_forked_child_has_a_page_of_its_own() {
    run("forks");
}

#[test]
fn a_child_made_by_a_raw_system_call_has_neither_page_of_its_parents() {
    for way in WAYS {
        let (mut command, _) = command(&Program::new("live.c", way), "raw", &format!("raw-{way:?}"));
        let folder = scratch(&format!("live-raw-requests-{way:?}"));
        expect_silent(command.env("FREESTONE_HEAP_PROFILE", "ready").env("XDG_RUNTIME_DIR", &folder), way);
        for file in fs::read_dir(&folder).expect("the folder exists").flatten() {
            fs::remove_file(file.path()).expect("the child ended by `_exit`, so its page is left");
        }
    }
}

#[test]
fn a_killed_process_leaves_a_whole_state() {
    run("killed");
}

#[test]
fn threads_write_states_and_fork_meanwhile() {
    run("threads");
}

#[test]
fn a_file_or_a_link_in_the_way_is_left_alone_and_said_to_be_there() {
    let program = Program::new("live.c", Way::Preload);
    for is_link in [false, true] {
        let (mut command, folder) = command(&program, "without", "in-the-way");
        let (page, target) = (folder.join("page"), folder.join("target"));
        fs::write(&target, "mine").expect("the folder can be written");
        if is_link {
            symlink(&target, &page).expect("the folder can be written");
        } else {
            fs::write(&page, "mine").expect("the folder can be written");
        }
        let output = command.env("FREESTONE_LIVE", &page).output().expect("the program can be run");
        let said = text(&output);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.matches("there is such a file").count(), 1, "{said}");
        assert_eq!(fs::read(&target).expect("still there"), b"mine");
        assert_eq!(fs::read(&page).expect("still there"), b"mine");
    }
}

#[test]
fn a_page_that_a_killed_process_left_is_replaced() {
    let program = Program::new("live.c", Way::Preload);
    let (mut command, folder) = command(&program, "without", "replaced");
    let page = folder.join("page");
    // The words of crates/freestone/src/stats/live_page.rs, of a process that cannot be.
    let mut words = b"freeston".to_vec();
    words.extend_from_slice(&2_u64.to_ne_bytes());
    words.extend_from_slice(&(i32::MAX as u64).to_ne_bytes());
    words.resize(PAGE_BYTES, 0);
    fs::write(&page, &words).expect("the folder can be written");
    let output = command.env("FREESTONE_LIVE", &page).output().expect("it runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output));
    assert!(!page.exists(), "it was taken over, and removed at exit");
}

#[test]
fn a_folder_that_cannot_be_written_is_reported_once_and_the_program_runs() {
    let program = Program::new("live.c", Way::Preload);
    let (mut command, _) = command(&program, "without", "nowhere");
    let output = command.env("FREESTONE_LIVE", "/nowhere/at/all/page").output().expect("the program can be run");
    let said = text(&output);
    assert!(output.status.success() && said.matches("freestone: option live: cannot create").count() == 1, "{said}");
}

#[test]
fn a_sandbox_and_a_setuid_program_have_no_page() {
    use std::os::unix::fs::PermissionsExt;
    let program = Program::new("live.c", Way::Archive);
    let (mut sandboxed, folder) = command(&program, "without", "sandbox");
    expect_silent(sandboxed.env("FREESTONE_SANDBOX", "on"), Way::Archive);
    assert!(is_empty(&folder));
    let is_root = harness::succeed(Command::new("id").arg("-u")).trim() == "0";
    if harness::foreign_target().is_some() || !is_root || !harness::installed("setpriv") {
        println!("skipped: another target's program, not root, or no setpriv");
        return;
    }
    let temporary = std::env::temp_dir();
    let setuid = temporary.join(format!("freestone-live-setuid-{}", std::process::id()));
    fs::copy(program.path(), &setuid).expect("a copy");
    fs::set_permissions(&setuid, fs::Permissions::from_mode(0o4755)).expect("root may do that");
    let mut unprivileged = Command::new("setpriv");
    unprivileged.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&setuid).arg("without").arg(&temporary);
    let output = unprivileged.env("FREESTONE_LIVE", temporary.join("%p.live")).output();
    fs::remove_file(&setuid).expect("ours");
    let output = output.expect("setpriv can be run");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output));
}
