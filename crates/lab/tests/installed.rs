//! The `freestone` command as it is installed: without the checkout it was built in, without cargo, and without writing into its prefix.

mod harness;

use harness::{holds, library, said, scratch, succeeded};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An installed tree outside the checkout, with a cargo in front of PATH that leaves a trace. Dropping it removes it.
struct Installed {
    folder: PathBuf,
    /// Whether the checkout can be hidden: mounted over, in a namespace of the command's own.
    hides: bool,
}

impl Installed {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("freestone-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for part in ["prefix/bin", "prefix/lib", "tools", "home", "work"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        fs::copy(env!("CARGO_BIN_EXE_freestone"), folder.join("prefix/bin/freestone")).unwrap();
        fs::copy(library(), folder.join("prefix/lib/libfreestone.so")).unwrap();
        let cargo = folder.join("tools/cargo");
        fs::write(&cargo, format!("#!/bin/sh\n: > {}\nexit 1\n", folder.join("cargo-ran").display())).unwrap();
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
        let hides =
            Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", root().to_str().unwrap()]).output();
        let hides = hides.is_ok_and(|output| output.status.success());
        if !hides {
            println!(
                "note: no mount namespace here (unshare), so the checkout stays in sight of the installed command"
            );
        }
        Self { folder, hides }
    }

    /// The installed command, not yet started.
    fn command(&self, arguments: &[&str]) -> Command {
        let freestone = self.folder.join("prefix/bin/freestone");
        let mut command = if self.hides {
            let hide = "mount -t tmpfs none \"$0\" && exec \"$@\"";
            let mut command = Command::new("unshare");
            command.args(["-rm", "sh", "-c", hide, root().to_str().unwrap()]).arg(freestone);
            command
        } else {
            Command::new(freestone)
        };
        let path = std::env::var("PATH").unwrap_or_default();
        command.args(arguments).current_dir(self.folder.join("work"));
        command.env("PATH", format!("{}:{path}", self.folder.join("tools").display()));
        command.env("HOME", self.folder.join("home"));
        command.env_remove("XDG_CACHE_HOME").env_remove("FREESTONELAB_PEERS").env_remove("FREESTONE_LIBRARY");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The files below the prefix, with their sizes and times.
    fn prefix(&self) -> String {
        let list =
            Command::new("find").arg(self.folder.join("prefix")).args(["-printf", "%p %s %T@\n"]).output().unwrap();
        String::from_utf8(list.stdout).unwrap()
    }

    fn cargo_ran(&self) -> bool {
        self.folder.join("cargo-ran").exists()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn every_command_works_without_the_checkout_and_without_cargo_and_leaves_the_prefix_alone() {
    let installed = Installed::new("installed");
    let before = installed.prefix();
    let short = ["--rounds", "1", "--no-report"];
    let work = ["bench", "tiny_hot", "-a", "system,freestone", "-p", "tiny_hot.ops=2000", "-o", "bench.jsonl"];
    let library = installed.folder.join("prefix/lib/libfreestone.so");
    let ran = installed.run(&["run", "--", "sh", "-c", "grep -m 1 libfreestone.so /proc/self/maps"]);
    holds(&succeeded(&ran), &["ran under freestone", "peak live"]);
    holds(&String::from_utf8_lossy(&ran.stdout), &[library.to_str().unwrap()]);
    for arguments in [
        &["run", "--rounds", "1", "--seed", "1"][..],
        &[&["compare"], &short[..], &["-o", "compare.jsonl", "--", "true"]].concat(),
        &[&work[..], &short[..]].concat(),
        &["report", "bench.jsonl"],
        &[&["experiment", "E"], &short[..], &["-a", "system,freestone", "-o", "e.jsonl"]].concat(),
        &["options"],
        &["peers", "list"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
    ] {
        let output = installed.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    }
    assert_eq!(installed.prefix(), before, "nothing is written below the prefix");
    assert!(!installed.cargo_ran(), "cargo ran");
}

#[test]
fn a_peer_is_not_built_by_an_installed_command_but_found_in_the_cache() {
    let installed = Installed::new("peers");
    let refused = installed.run(&["bench", "tiny_hot", "-a", "jemalloc"]);
    assert!(!refused.status.success());
    let cache = installed.folder.join("home/.cache/freestone/peers");
    let way_out =
        ["does not build peers", "peers build jemalloc", cache.to_str().unwrap(), "--allocator jemalloc=PATH.so"];
    holds(&said(&refused), &way_out);
    holds(&said(&installed.run(&["peers", "build"])), &way_out);
    // Freestone's library stands in for a peer: it need not be built.
    fs::create_dir_all(&cache).unwrap();
    fs::copy(installed.folder.join("prefix/lib/libfreestone.so"), cache.join("libpeer_jemalloc.so")).unwrap();
    let listed = installed.run(&["peers"]);
    holds(&String::from_utf8_lossy(&listed.stdout), &[env!("CARGO_PKG_VERSION")]);
    assert!(!installed.cargo_ran(), "cargo ran");
}

#[test]
fn a_library_that_is_not_installed_is_the_one_that_the_variable_names_or_the_places_are_listed() {
    let installed = Installed::new("library");
    let moved = installed.folder.join("elsewhere.so");
    fs::rename(installed.folder.join("prefix/lib/libfreestone.so"), &moved).unwrap();
    let lib = installed.folder.join("prefix/lib");
    let refused = said(&installed.run(&["run", "--", "true"]));
    holds(&refused, &["libfreestone.so is neither in", lib.to_str().unwrap(), "FREESTONE_LIBRARY is not set"]);
    let ran =
        |library: &Path| installed.command(&["run", "--", "ls"]).env("FREESTONE_LIBRARY", library).output().unwrap();
    holds(&succeeded(&ran(&moved)), &["ran under freestone"]);
    holds(&said(&ran(&scratch().join("gone.so"))), &["FREESTONE_LIBRARY names", "gone.so, which is no file"]);
    holds(&said(&ran(Path::new("/etc/passwd"))), &["/etc/passwd is not a shared object"]);
}
