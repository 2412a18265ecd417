//! Heap profiles of C programs: call sites have what they hold, bad files are said, and nothing hangs or crashes where profilers do.

mod harness;

use harness::{Program, WAYS, Way, scratch};
use std::fs;
use std::path::PathBuf;

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
        for (path, error) in [("/dev/full", 28), ("/no/such/folder/x", 2)] {
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
fn nothing_hangs_while_threads_load_libraries_fork_take_signals_and_exit() {
    for (way, flags) in [(Way::Preload, &STRIPPED[..]), (Way::Shared, &["-O1"][..])] {
        let mut command = Program::with_flags("profile.c", way, flags).command();
        // A tenth of a million samples; FREESTONE_TEST_SAMPLES asks for more.
        let n = std::env::var("FREESTONE_TEST_SAMPLES").unwrap_or_else(|_| "60000".into());
        command.args(["stress", &n]).envs([
            ON,
            ("FREESTONE_HEAP_PROFILE_INTERVAL", "128"),
            ("FREESTONE_HEAP_PROFILE_FILE", "/dev/null"),
        ]);
        let output = command.output().expect("the program can be run");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{way:?}: {:?} {}",
            output.status,
            text(&output.stderr)
        );
    }
}
