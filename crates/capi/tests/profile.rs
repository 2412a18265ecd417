//! Heap profiles of C programs: call sites have what they hold, bad files are said, and nothing hangs or crashes where profilers do.

mod harness;

use harness::{Program, WAYS, Way, c_compiler, cpp_compiler, crate_dir, emulated, scratch, succeed};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Small enough for any program's samples to be many.
const INTERVAL: (&str, &str) = ("FREESTONE_HEAP_PROFILE_INTERVAL", "4k");
const ON: (&str, &str) = ("FREESTONE_HEAP_PROFILE", "on");

/// Flags of a program without symbols and without frame pointers.
const STRIPPED: [&str; 3] = ["-O2", "-fomit-frame-pointer", "-s"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn file(name: &str, way: Way) -> PathBuf {
    scratch("profile").join(format!("{name}-{way:?}.heap"))
}

/// Bytes that are live according to a profile, for each stack that has any.
fn live_bytes(profile: &str, interval: f64) -> Vec<f64> {
    let scaled = |line: &str| {
        let mut numbers = line.split([':', '[']).map(|number| number.trim().parse::<f64>());
        let (blocks, bytes) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        (blocks > 0.0).then(|| bytes / -(-(bytes / blocks) / interval).exp_m1())
    };
    profile.lines().skip(1).take_while(|line| !line.is_empty()).filter_map(scaled).collect()
}

#[test]
fn call_sites_of_a_stripped_program_without_frame_pointers_have_what_they_hold() {
    for way in WAYS {
        let program = Program::with_flags("profile.c", way, &STRIPPED);
        let path = file("sites", way);
        let output = program
            .command()
            .args(["sites", "100000"])
            .envs([ON, INTERVAL])
            .env("FREESTONE_HEAP_PROFILE_FILE", &path)
            .output();
        let output = output.expect("the program can be run");
        assert!(output.status.success() && output.stderr.is_empty(), "{way:?}: {}", text(&output.stderr));
        let profile = fs::read_to_string(&path).expect("the profile was written");
        assert!(profile.starts_with("heap profile: ") && profile.contains("\n\nMAPPED_LIBRARIES:\n"), "{way:?}");
        let mut sites = live_bytes(&profile, 4096.0);
        sites.sort_by(f64::total_cmp);
        let [.., small, large] = sites[..] else { panic!("{way:?}: {profile}") };
        assert!((large / f64::from(20 * (3 << 20)) - 1.0).abs() < 0.01, "{way:?}: {large}");
        assert!((small / 11_200_000.0 - 1.0).abs() < 0.15, "{way:?}: {small}");
    }
}

#[test]
fn a_stack_ends_at_generated_code() {
    for way in WAYS {
        let path = file("generated", way);
        let mut command = Program::new("profile.c", way).command();
        command.args(["generated", "1000"]).envs([ON, ("FREESTONE_HEAP_PROFILE_INTERVAL", "64")]);
        let output = command.env("FREESTONE_HEAP_PROFILE_FILE", &path).output().expect("the program can be run");
        assert!(output.status.success() && output.stderr.is_empty(), "{way:?}: {}", text(&output.stderr));
        assert!(fs::read_to_string(&path).expect("the profile was written").starts_with("heap profile: "), "{way:?}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_said_once_and_the_program_ends_as_it_would() {
    for way in WAYS {
        let program = Program::new("profile.c", way);
        for (path, error) in
            [("/dev/full", "28 (the disk is full)"), ("/no/such/folder/x", "2 (no such file or folder)")]
        {
            let mut command = program.command();
            command.args(["sites", "1000"]).envs([ON, INTERVAL, ("FREESTONE_HEAP_PROFILE_FILE", path)]);
            let output = command.output().expect("the program can be run");
            let said = format!(
                "freestone: cannot write the heap profile to {path}: error {error}; give another path with heap_profile_file\n"
            );
            assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), said), "{way:?}");
        }
        let output = program.command().args(["dump", "0"]).output().expect("the program can be run");
        assert!(output.status.success(), "{way:?}: {}", text(&output.stderr));
        assert!(text(&output.stdout).starts_with("heap profile: "), "{way:?}");
    }
}

#[test]
fn a_million_samples_hang_and_crash_nothing_while_threads_load_fork_throw_take_signals_and_end() {
    if cpp_compiler().is_none() {
        return;
    }
    for (way, flags) in [(Way::Preload, &STRIPPED[..]), (Way::Shared, &["-O1"][..])] {
        let path = file("stress", way);
        let mut command = Program::with_flags("profile_stress.cpp", way, flags).command();
        // So many times make 2.7 times as many samples.
        let is_short = emulated("a million samples take minutes");
        command.arg(if is_short { "4000" } else { "400000" });
        command.envs([ON, ("FREESTONE_HEAP_PROFILE_INTERVAL", "128")]).env("FREESTONE_HEAP_PROFILE_FILE", &path);
        let output = command.output().expect("the program can be run");
        assert!(is_silent(&output), "{way:?}: {:?} {}", output.status, text(&output.stderr));
        let profile = fs::read_to_string(&path).expect("the profile was written");
        let n_samples = profile.split(['[', ':']).nth(3).and_then(|n| n.trim().parse::<u64>().ok());
        assert!(n_samples > Some(if is_short { 5000 } else { 1_000_000 }), "{way:?}: {:?}", profile.lines().next());
    }
}

#[test]
fn stacks_are_right_in_a_library_that_is_loaded_where_another_was() {
    let plugins = [200, 3000, 400].map(|frame| {
        let path = scratch("programs").join(format!("profile-plugin-{frame}.so"));
        let mut compile = Command::new(c_compiler());
        compile.args(["-O1", "-shared", "-fPIC", "-fomit-frame-pointer", "-fno-stack-protector"]);
        compile.arg(format!("-DFRAME={frame}")).arg("-o").arg(&path);
        succeed(compile.arg(crate_dir().join("tests/c/profile_plugin.c")));
        path.display().to_string()
    });
    for way in [Way::Preload, Way::Shared] {
        let mut command = Program::new("profile.c", way).command();
        command.args(["reload", &plugins.join(":")]).envs([ON, ("FREESTONE_HEAP_PROFILE_INTERVAL", "1")]);
        command.env("FREESTONE_HEAP_PROFILE_FILE", "/dev/null");
        let output = command.output().expect("the program can be run");
        assert!(is_silent(&output), "{way:?}: {:?} {}", output.status, text(&output.stderr));
        println!("{way:?}: {} times at the same address", text(&output.stdout).trim());
    }
}

/// Runs the C program with options, and returns its result and how many profiles it wrote to `name`.N.
fn run(way: Way, what: &str, name: &str, options: &[(&str, &str)]) -> (Output, usize) {
    let folder = scratch("profile").join(format!("{name}-{way:?}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let path = folder.join("heap");
    let mut command = Program::new("profile.c", way).command();
    command.args([what, "1"]).env("PROFILE", &path).env("XDG_RUNTIME_DIR", &folder);
    command.env("FREESTONE_HEAP_PROFILE_FILE", folder.join("heap.%n"));
    command.envs(options.iter().map(|(name, value)| (format!("FREESTONE_HEAP_PROFILE{name}"), value)));
    let output = command.output().expect("the program can be run");
    let mut n = 0;
    for entry in fs::read_dir(&folder).expect("the folder can be read").flatten() {
        let profile = fs::read_to_string(entry.path()).expect("a profile can be read");
        // The program may end while the background thread writes one.
        if what == "wait" && !profile.contains("MAPPED_LIBRARIES") {
            continue;
        }
        assert!(profile.starts_with("heap profile: ") && profile.contains("MAPPED_LIBRARIES"), "{entry:?}: {profile}");
        n += 1;
    }
    fs::remove_dir_all(&folder).expect("the folder can be removed");
    (output, n)
}

fn is_silent(output: &Output) -> bool {
    output.status.success() && output.stderr.is_empty()
}

#[test]
fn a_signal_starts_profiling_and_then_has_a_profile_written_while_the_program_sleeps() {
    for way in WAYS {
        for (signal, mode) in [("usr1", "ready"), ("usr1", "on")] {
            let (output, n) = run(way, "signals", mode, &[("", mode), ("_SIGNAL", signal), ("_INTERVAL", "64")]);
            assert!(is_silent(&output) && n >= 3, "{way:?} {mode}: {:?}, {n} profiles", output);
        }
    }
}

#[test]
fn a_program_keeps_its_own_handler_and_one_that_ignores_the_signal_is_told() {
    for way in WAYS {
        let (output, n) = run(way, "handled", "handled", &[("", "on"), ("_SIGNAL", "usr1")]);
        assert!(is_silent(&output) && n == 1, "{way:?}: {output:?}, {n} profiles");
        let program = Program::new("profile.c", way);
        let setup = "trap '' USR1; export FREESTONE_HEAP_PROFILE=on FREESTONE_HEAP_PROFILE_SIGNAL=usr1 \
                     FREESTONE_HEAP_PROFILE_FILE=/dev/null";
        let output = program.command_after(setup, "sites 1").output().expect("the program can be run");
        let said = "freestone: heap_profile_signal: the program handles or ignores this signal already\n";
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), said.into()), "{way:?}");
    }
}

#[test]
fn profiles_are_written_at_so_many_bytes_at_so_much_growth_and_at_an_interval() {
    for way in WAYS {
        let all = ("_INTERVAL", "1");
        // One at exit as well. Before `main`, the C library allocates a little.
        let (output, n) = run(way, "pass", "pass", &[("", "on"), all, ("_ALLOCATED", "1m")]);
        assert!(is_silent(&output) && (11..=12).contains(&n), "{way:?}: {output:?}, {n} profiles");
        for what in ["grow", "grow_on_tiny"] {
            let (output, n) = run(way, what, what, &[("", "on"), all, ("_GROWTH", "2m")]);
            assert!(is_silent(&output) && (5..=6).contains(&n), "{way:?} {what}: {output:?}, {n} profiles");
        }
        let (output, n) = run(way, "wait", "wait", &[("", "on"), all, ("_MS", "20")]);
        assert!(is_silent(&output) && n >= 4, "{way:?}: {output:?}, {n} profiles");
        let (output, n) = run(way, "pass", "none", &[("", "on"), all]);
        assert!(is_silent(&output) && n == 1, "{way:?}: {output:?}, {n} profiles");
    }
}

#[test]
fn a_profile_that_is_due_is_written_on_a_stack_of_which_little_is_left() {
    for way in WAYS {
        let options = [("", "on"), ("_INTERVAL", "1"), ("_GROWTH", "1m")];
        let (output, n) = run(way, "grow_on_measured", "measured", &options);
        assert!(is_silent(&output) && n >= 10, "{way:?}: {output:?}, {n} profiles");
    }
}

#[test]
fn options_that_are_not_understood_are_said_and_a_profile_that_nobody_asked_for_fails_once() {
    for way in WAYS {
        for (name, value) in [
            ("_SIGNAL", "hup"),
            ("_SIGNAL", "10"),
            ("_MS", "-1"),
            ("_MS", "86400001"),
            ("_ALLOCATED", "often"),
            ("_GROWTH", "1x"),
        ] {
            let (output, n) = run(way, "pass", "bad", &[("", "on"), (name, value)]);
            let said = text(&output.stderr);
            assert!(
                output.status.success() && n == 1 && said.lines().count() == 1 && said.contains(" ignored: "),
                "{way:?} {name}={value}: {said}"
            );
        }
        let program = Program::new("profile.c", way);
        // A full disk, a folder, a file in no folder, a file system that nobody can write to, and a limit on the length of files.
        let refused = [
            ("/dev/full", "28 (the disk is full)"),
            ("/tmp", "21 (a folder)"),
            ("/dev/null/x", "20 (not a folder)"),
            ("/proc/x", "2 (no such file or folder)"),
        ];
        for (path, error) in refused {
            let mut command = program.command();
            command.args(["pass", "1"]).envs([
                ON,
                INTERVAL,
                ("FREESTONE_HEAP_PROFILE_FILE", path),
                ("FREESTONE_HEAP_PROFILE_ALLOCATED", "1m"),
            ]);
            let output = command.output().expect("the program can be run");
            let said = format!(
                "freestone: cannot write the heap profile to {path}: error {error}; give another path with heap_profile_file\n"
            );
            assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), said), "{way:?}");
        }
        let path = file("limited", way);
        let setup =
            format!("ulimit -f 1; export FREESTONE_HEAP_PROFILE=on FREESTONE_HEAP_PROFILE_FILE='{}'", path.display());
        let output = program.command_after(&setup, "pass 1").output().expect("the program can be run");
        assert!(
            output.status.success() && text(&output.stderr).contains(": error 27 (a limit on the length of files); "),
            "{way:?}: {output:?}"
        );
        let mut command = program.command();
        command.args(["pass", "1"]).env("FREESTONE_HEAP_PROFILE", "ready").env("XDG_RUNTIME_DIR", "/no/such/folder");
        let output = command.output().expect("the program can be run");
        // A program that ends before the page is due says nothing.
        let said = text(&output.stderr);
        assert!(
            output.status.success()
                && (said.is_empty()
                    || said.starts_with("freestone: heap_profile=ready: cannot create /no/such/folder/")),
            "{way:?}: {said}"
        );
    }
}
