//! Options: environment, then link-time symbol, then API; the last one wins. Mistakes are reported once and ignored.

mod harness;

use harness::{Program, Way, expect_silent, text};

#[test]
fn without_any_setting_the_default_holds() {
    let program = Program::new("options.c", Way::Archive);
    expect_silent(program.command().arg("1000"), Way::Archive);
}

#[test]
fn the_api_overrides_the_environment() {
    let program = Program::new("options.c", Way::Archive);
    expect_silent(program.command().arg("111").env("FREESTONE_DECAY_MS", "111"), Way::Archive);
    expect_silent(program.command().args(["333", "333"]).env("FREESTONE_DECAY_MS", "111"), Way::Archive);
}

#[test]
fn the_link_time_symbol_overrides_the_environment_and_its_mistakes_are_reported_once() {
    for way in [Way::Archive, Way::Shared] {
        let program = Program::with_flags("options.c", way, &["-DLINKED"]);
        let output =
            program.command().arg("222").env("FREESTONE_DECAY_MS", "111").output().expect("the program can be run");
        assert!(output.status.success(), "{way:?}: {}", text(&output));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            said,
            "freestone: option nonsense=1 (freestone_options) ignored: there is no such option; `freestone options` lists them\n",
            "{way:?}"
        );
    }
}

#[test]
fn malformed_options_are_reported_and_ignored() {
    let program = Program::new("options.c", Way::Preload);
    for (name, value, why) in [
        ("FREESTONE_DECAY_MS", "soon", "not a number (only bytes may end in k, m or g)"),
        ("FREESTONE_DIRTY_MAX", "", "not a number (only bytes may end in k, m or g)"),
        ("FREESTONE_MISUSE", "explode", "not one of its words"),
        ("FREESTONE_BIN_MAX", "0", "out of range"),
        ("FREESTONE_COLOUR", "blue", "there is no such option"),
        ("FREESTONE_DECAI_MS", "5", "there is no such option, did you mean `FREESTONE_DECAY_MS`?"),
    ] {
        let output = program.command().arg("1000").env(name, value).output().expect("the program can be run");
        assert!(output.status.success(), "{}", text(&output));
        let line =
            format!("freestone: option {name}={value} (environment) ignored: {why}; `freestone options` lists them\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), line);
    }
}

#[test]
fn a_mistake_in_a_long_name_or_value_is_said_in_one_line_with_its_reason() {
    let program = Program::new("options.c", Way::Preload);
    for (name, value, why) in [
        (format!("FREESTONE_{}", "X".repeat(3000)), String::new(), "there is no such option"),
        ("FREESTONE_REPORT".to_owned(), "/x".repeat(1000), "out of range"),
        ("FREESTONE_MISUSE".to_owned(), "ö".repeat(1000), "not one of its words"),
    ] {
        let output = program.command().arg("1000").env(&name, value).output().expect("the program can be run");
        assert!(output.status.success(), "{}", text(&output));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with(&format!("freestone: option {}", &name[..16])), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.ends_with(&format!(" (environment) ignored: {why}; `freestone options` lists them\n")), "{said}");
    }
}

/// A program with more rights than its caller ignores the environment. Needs root, to make such a program and to run it as another user.
#[test]
fn options_have_no_effect_in_a_setuid_program() {
    use std::os::unix::fs::PermissionsExt;
    let program = Program::new("options.c", Way::Archive);
    let is_root = harness::succeed(std::process::Command::new("id").arg("-u")).trim() == "0";
    if harness::foreign_target().is_some() || !is_root || !harness::installed("setpriv") {
        println!("skipped: another target's program, not root, or no setpriv");
        return;
    }
    let setuid = std::env::temp_dir().join(format!("freestone-setuid-{}", std::process::id()));
    std::fs::copy(program.path(), &setuid).expect("a copy");
    std::fs::set_permissions(&setuid, std::fs::Permissions::from_mode(0o4755)).expect("root may do that");
    let mut unprivileged = std::process::Command::new("setpriv");
    unprivileged.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&setuid).arg("1000");
    let output = unprivileged.env("FREESTONE_DECAY_MS", "111").output();
    std::fs::remove_file(&setuid).expect("ours");
    let output = output.expect("setpriv can be run");
    assert!(output.status.success(), "{}", text(&output));
}
