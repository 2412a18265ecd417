//! What counts as a run of a command: which allocator it has, how it may end, what it reads and what it leaves open.

mod harness;

use harness::{command, library, said, succeeded};

#[test]
fn a_command_does_not_inherit_an_allocator_that_the_user_preloads_but_other_libraries() {
    let library = library();
    let preloaded = format!("{} libm.so.6", library.display());
    for (allocator, list) in [("system", "libm.so.6"), ("freestone", &format!("{}:libm.so.6", library.display()))] {
        let mut run = command(&["run", "-a", allocator, "--", "sh", "-c", "echo $LD_PRELOAD"]);
        let output = run.env("LD_PRELOAD", &preloaded).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), list);
        let has_report = succeeded(&output).contains("library        freestone");
        assert_eq!(has_report, allocator == "freestone", "{}", said(&output));
    }
}
