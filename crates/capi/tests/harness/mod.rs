//! Builds the library as it is shipped, compiles the C programs of `tests/c` and runs them with it in each of the three ways a
//! program can get it: preloaded, linked against the shared library, linked against the archive.
//!
//! With `CAPI_TEST_TARGET` (`cargo xtask platforms` sets it) all of that is for another target than this machine's: cargo's
//! `CARGO_TARGET_…_LINKER` names its C compiler, `CARGO_TARGET_…_RUNNER` what runs its programs.
//!
//! With `CAPI_TEST_HARDEN` (`cargo xtask alarms` sets it) the programs run at that level of the option `harden`.
#![allow(dead_code, reason = "each test binary uses its share")]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock};

/// How a program gets the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Without the library: the system's allocator.
    System,
    /// `LD_PRELOAD`.
    Preload,
    /// Linked against `libfreestone.so`.
    Shared,
    /// Linked against `libfreestone.a`.
    Archive,
}

/// Every way that has the library in the process.
pub(crate) const WAYS: [Way; 3] = [Way::Preload, Way::Shared, Way::Archive];

/// The crate's folder.
pub(crate) fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The target that programs are compiled for, if it is not this machine's.
pub(crate) fn foreign_target() -> Option<String> {
    env::var("CAPI_TEST_TARGET").ok()
}

/// Whether the programs' C library is musl.
pub(crate) fn is_musl() -> bool {
    foreign_target().is_some_and(|target| target.ends_with("-musl"))
}

/// The words of cargo's variable for the foreign target; none if there is no such target or variable.
fn target_setting(name: &str) -> Vec<String> {
    let variable =
        foreign_target().map(|target| format!("CARGO_TARGET_{}_{name}", target.to_uppercase().replace('-', "_")));
    let value = variable.and_then(|variable| env::var(variable).ok()).unwrap_or_default();
    value.split_whitespace().map(str::to_owned).collect()
}

/// The C compiler for the target.
pub(crate) fn c_compiler() -> String {
    target_setting("LINKER").pop().unwrap_or_else(|| "cc".into())
}

/// The C++ compiler for the target; `None` if there is none.
pub(crate) fn cpp_compiler() -> Option<String> {
    match foreign_target() {
        None => Some("c++".into()),
        // A musl target's C compiler is a wrapper without a C++ library.
        Some(_) if is_musl() => None,
        Some(_) => Some(c_compiler().replace("gcc", "g++")),
    }
    .filter(|compiler| installed(compiler))
}

/// Whether programs run under an emulator; a test that cannot be right there says so and passes.
pub(crate) fn emulated(why: &str) -> bool {
    if is_emulated() {
        println!("skipped under emulation: {why}");
    }
    is_emulated()
}

fn is_emulated() -> bool {
    !target_setting("RUNNER").is_empty()
}

/// A command that runs a program of the target.
pub(crate) fn target_command(program: &Path) -> Command {
    let mut runner = target_setting("RUNNER").into_iter();
    match runner.next() {
        Some(first) => {
            let mut command = Command::new(first);
            command.args(runner).arg(program).env("EMULATED", "1");
            command
        }
        None => Command::new(program),
    }
}

/// A folder for what the tests make, by name.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(foreign_target().unwrap_or_default()).join(name);
    fs::create_dir_all(&dir).expect("the target folder can be written");
    dir
}

/// The folder with the release build of `libfreestone.so` and `.a` and of `libfreestone_memory.so`, brought up to date once a test binary.
pub(crate) fn library_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder of the target folder");
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--release", "--package", "freestone-capi", "--package", "freestone-memory"]);
        build.arg("--target-dir").arg(target);
        let foreign = foreign_target();
        build.args(foreign.iter().flat_map(|target| ["--target", target]));
        let output = build.current_dir(crate_dir()).output().expect("cargo can be run");
        assert!(output.status.success(), "the library does not build:\n{}", String::from_utf8_lossy(&output.stderr));
        let release = target.join(foreign.unwrap_or_default()).join("release");
        // Programs linked against the shared library look for its soname, as an installed tree has it.
        let soname = release.join("libfreestone.so.0");
        if !soname.exists() {
            let draft = release.join(format!("libfreestone.so.0-{}", std::process::id()));
            std::os::unix::fs::symlink("libfreestone.so", &draft).expect("the target folder can be written");
            fs::rename(&draft, &soname).expect("a file of our own can be renamed");
        }
        release
    })
}

/// The shared library.
pub(crate) fn shared_library() -> PathBuf {
    library_dir().join("libfreestone.so")
}

/// The library of checked memory functions.
pub(crate) fn memory_library() -> PathBuf {
    library_dir().join("libfreestone_memory.so")
}

/// The archive.
pub(crate) fn archive() -> PathBuf {
    library_dir().join("libfreestone.a")
}

/// The command's output; a command that cannot be run, or fails, is the test's failure.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed: {}\n{}", output.status, text(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Both streams of an output.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What a program wrote to standard error. An emulator adds by which signal the program ended, which is left out.
pub(crate) fn said(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    if !is_emulated() {
        return said.into_owned();
    }
    said.lines()
        .filter(|line| !line.is_empty() && !line.starts_with("qemu: "))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Whether a tool is installed; a test that needs one that is not says so and passes.
pub(crate) fn installed(tool: &str) -> bool {
    let found = env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(tool).is_file()));
    if !found {
        println!("skipped: {tool} is not installed");
    }
    found
}

/// Done once; whoever comes meanwhile waits.
type Once = Arc<OnceLock<()>>;

/// A program of `tests/c`, compiled for one way.
pub(crate) struct Program {
    path: PathBuf,
    way: Way,
}

impl Program {
    /// Compiles `tests/c/SOURCE`.
    pub(crate) fn new(source: &str, way: Way) -> Self {
        Self::with_flags(source, way, &[])
    }

    /// Compiles `tests/c/SOURCE` with more flags.
    pub(crate) fn with_flags(source: &str, way: Way, flags: &[&str]) -> Self {
        Self::of(&crate_dir().join("tests/c").join(source), way, flags)
    }

    /// Compiles a source, unless another test of this binary has.
    pub(crate) fn of(from: &Path, way: Way, flags: &[&str]) -> Self {
        static COMPILED: Mutex<BTreeMap<(PathBuf, PathBuf), Once>> = Mutex::new(BTreeMap::new());
        let source = from.file_name().and_then(|name| name.to_str()).expect("a source has a name");
        let way_name = match way {
            Way::System => "plain",
            Way::Preload => "preload",
            Way::Shared => "shared",
            Way::Archive => "archive",
        };
        let name = format!("{}-{way_name}{}", source.replace('.', "-"), flags.concat().replace(['/', '.'], "_"));
        let path = scratch("programs").join(name);
        let key = (from.to_owned(), path.clone());
        let compiled = COMPILED.lock().expect("nothing panics with the lock held").entry(key).or_default().clone();
        compiled.get_or_init(|| compile(from, way, flags, &path));
        Self { path, way }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A command that runs it, with the library in its process. Options of the tests' own environment do not reach it.
    pub(crate) fn command(&self) -> Command {
        let mut command = target_command(&self.path);
        self.prepare(&mut command);
        command
    }

    /// A command that runs it through a shell, after `setup` (`ulimit` and the like).
    pub(crate) fn command_after(&self, setup: &str, arguments: &str) -> Command {
        let preload = match self.way {
            Way::Preload => format!("export LD_PRELOAD='{}'; ", preload_value(false)),
            Way::Shared => format!("export LD_LIBRARY_PATH='{}'; ", library_dir().display()),
            Way::System | Way::Archive => String::new(),
        };
        let mut command = Command::new("bash");
        clear_options(&mut command);
        let runner = target_setting("RUNNER").join(" ");
        command.arg("-c").arg(format!("{setup}; {preload}exec {runner} '{}' {arguments}", self.path.display()));
        command
    }

    fn prepare(&self, command: &mut Command) {
        clear_options(command);
        match self.way {
            Way::Preload => {
                command
                    .env("LD_PRELOAD", preload_value(env::var("CAPI_TEST_HARDEN").is_ok_and(|level| level == "full")));
            }
            Way::Shared => {
                command.env("LD_LIBRARY_PATH", library_dir());
            }
            Way::System | Way::Archive => {}
        }
    }
}

/// Compiles a source to a program. Other test binaries may compile the same one at once: each writes a file of its own and renames it.
fn compile(from: &Path, way: Way, flags: &[&str], path: &Path) {
    let library = library_dir();
    let draft = path.with_extension(std::process::id().to_string());
    let is_cpp = from.extension().is_some_and(|extension| extension == "cpp");
    let mut compile = Command::new(if is_cpp { cpp_compiler().expect("a C++ compiler") } else { c_compiler() });
    compile.args(["-O1", "-g", "-fno-builtin", "-Wall", "-Wextra", "-Werror", "-Wno-unused-result"]);
    if is_cpp {
        compile.args(["-std=c++17", "-Wno-noexcept-type", "-Wno-mismatched-new-delete"]);
    }
    compile.args(["-Wno-use-after-free", "-Wno-free-nonheap-object", "-Wno-alloc-size-larger-than", "-pthread", "-I"]);
    compile.arg(crate_dir().join("include")).arg("-o").arg(&draft).arg(from);
    match way {
        Way::System => {}
        Way::Preload if is_cpp => {}
        Way::Preload => {
            compile.arg("-Wl,-z,dynamic-undefined-weak").arg("-include").arg(crate_dir().join("tests/c/weak.h"));
        }
        Way::Shared => {
            compile.arg("-L").arg(library).arg("-lfreestone");
        }
        Way::Archive => {
            compile.arg(archive());
        }
    }
    succeed(compile.args(flags).arg("-ldl"));
    fs::rename(&draft, path).expect("a file of our own can be renamed");
}

/// The value of `LD_PRELOAD`: the library, and with `is_full` that of checked memory functions.
pub(crate) fn preload_value(is_full: bool) -> String {
    let library = shared_library();
    if is_full {
        format!("{} {}", library.display(), memory_library().display())
    } else {
        library.display().to_string()
    }
}

fn clear_options(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("FREESTONE_") {
            command.env_remove(name);
        }
    }
    command.envs(env::var("CAPI_TEST_HARDEN").ok().map(|level| ("FREESTONE_HARDEN", level)));
}

/// Compiles and runs a program with one argument in each way; it must succeed without a word on standard error.
pub(crate) fn run_everywhere(source: &str, argument: &str) {
    for way in WAYS {
        let program = Program::new(source, way);
        expect_silent(program.command().arg(argument), way);
    }
}

/// Runs a command that must succeed without a word on standard error.
pub(crate) fn expect_silent(command: &mut Command, way: Way) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{way:?}: {command:?} failed: {}\n{}", output.status, text(&output));
    assert!(output.stderr.is_empty(), "{way:?}: {command:?} said:\n{}", text(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
