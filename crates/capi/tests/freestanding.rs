//! `libfreestone_tlsf.a` and `libfreestone_pool.a`: libraries without a C library, for this machine, for 32 bits and for a microcontroller.

mod harness;

use harness::{crate_dir, foreign_target, installed, scratch, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest code of a program on a Cortex-M4 that allocates, resizes and frees, library included.
const CODE_BYTES_MAX: u64 = 8 << 10;

/// The folder with both archives for a target; none: for this machine.
fn archives(target: Option<&str>) -> PathBuf {
    let out = scratch("archives").join(target.unwrap_or("here"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["run", "--quiet", "--package", "xtask", "--", "archives", "--out"]).arg(&out);
    build.args(target.iter().flat_map(|target| ["--target", target]));
    succeed(build.current_dir(crate_dir().join("../..")));
    out
}

/// Whether the standard library or `core` of a target is installed.
fn has_target(name: &str) -> bool {
    let mut rustup = Command::new("rustup");
    let listed = rustup.args(["target", "list", "--installed"]).output();
    let found = listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).lines().any(|line| line == name));
    if !found {
        println!("skipped: `rustup target add {name}` is needed");
    }
    found
}

/// The symbols of an archive that are not local, with those that it needs from elsewhere.
fn global_symbols(archive: &Path) -> (Vec<String>, Vec<String>) {
    let listed = succeed(Command::new("readelf").args(["--wide", "--symbols"]).arg(archive));
    let words = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let global = words.filter(|words| words.len() == 8 && words[4] != "LOCAL" && words[4] != "Bind");
    // The linker itself defines the last one, of code for 32 bits that may be anywhere.
    let global = global.filter(|words| words[7] != "_GLOBAL_OFFSET_TABLE_");
    let (missing, defined): (Vec<_>, Vec<_>) = global.partition(|words| words[6] == "UND");
    let names = |symbols: Vec<Vec<&str>>| symbols.into_iter().map(|words| words[7].to_owned()).collect();
    (names(defined), names(missing))
}

/// What must hold of both archives in a folder: they define their own functions alone, and need nothing.
fn expect_self_contained(folder: &Path) {
    for name in ["tlsf", "pool"] {
        let (defined, missing) = global_symbols(&folder.join(format!("libfreestone_{name}.a")));
        let prefix = format!("freestone_{name}_");
        assert!(defined.len() > 10 && defined.iter().all(|symbol| symbol.starts_with(&prefix)), "{defined:?}");
        assert_eq!(missing, Vec::<String>::new(), "{}", folder.display());
    }
}

/// Links the program with both archives and nothing else, and runs it.
fn run_alone(folder: &Path, more: &[&str]) {
    let program = scratch("programs").join(format!("freestanding{}", more.concat()));
    let mut compile = Command::new("gcc");
    compile
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-stack-protector", "-static"])
        .args(more);
    compile.args(["-nostdlib", "-DTLSF", "-DPOOL", "-DALL", "-I"]).arg(crate_dir().join("include"));
    compile.arg(crate_dir().join("tests/c/freestanding.c")).arg("-L").arg(folder);
    succeed(compile.args(["-lfreestone_tlsf", "-lfreestone_pool", "-o"]).arg(&program));
    succeed(&mut Command::new(&program));
}

#[test]
fn the_archives_define_their_functions_alone_and_a_program_without_a_c_library_runs_on_both() {
    if foreign_target().is_some() {
        return;
    }
    let folder = archives(None);
    expect_self_contained(&folder);
    run_alone(&folder, &[]);
}

#[test]
fn so_they_do_with_32_bits() {
    const TARGET: &str = "i686-unknown-linux-gnu";
    let mut compiler = Command::new("gcc");
    let has_gcc = compiler.args(["-m32", "-print-libgcc-file-name"]).status().is_ok_and(|status| status.success());
    if foreign_target().is_some() || !has_gcc || !has_target(TARGET) {
        return;
    }
    let folder = archives(Some(TARGET));
    expect_self_contained(&folder);
    run_alone(&folder, &["-m32"]);
}

/// Links the program for a Cortex-M4 with what `defines` ask for.
fn image(folder: &Path, defines: &[&str]) -> PathBuf {
    let name = format!("cortex_m{}", defines.concat());
    let (object, image) = (scratch("programs").join(format!("{name}.o")), scratch("programs").join(name));
    let mut compile = Command::new("clang");
    compile.args([
        "--target=thumbv7em-none-eabi",
        "-mcpu=cortex-m4",
        "-Os",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-ffreestanding",
    ]);
    compile.args(["-ffunction-sections", "-c"]).args(defines).arg("-I").arg(crate_dir().join("include"));
    succeed(compile.arg(crate_dir().join("tests/c/freestanding.c")).arg("-o").arg(&object));
    let libdir = succeed(Command::new("rustc").args(["--print", "target-libdir"]));
    let linker = Path::new(libdir.trim()).with_file_name("bin").join("gcc-ld/ld.lld");
    let mut link = Command::new(linker);
    link.args(["--gc-sections", "-e", "_start", "-T"]).arg(crate_dir().join("tests/c/cortex_m.ld")).arg(&object);
    succeed(link.arg("-L").arg(folder).args(["-lfreestone_tlsf", "-lfreestone_pool", "-o"]).arg(&image));
    image
}

#[test]
fn on_a_microcontroller_the_whole_program_is_small_and_runs() {
    const TARGET: &str = "thumbv7em-none-eabi";
    if foreign_target().is_some() || !has_target(TARGET) || !installed("clang") {
        return;
    }
    let folder = archives(Some(TARGET));
    expect_self_contained(&folder);
    let small = image(&folder, &["-DTLSF"]);
    let sections = succeed(Command::new("readelf").args(["--wide", "--sections"]).arg(&small));
    let text = sections
        .split(']')
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|words| words.first() == Some(&".text"));
    let bytes = u64::from_str_radix(text.expect("the program has code")[4], 16).expect("a number");
    println!("{bytes} bytes of code");
    assert!(bytes <= CODE_BYTES_MAX, "{bytes} bytes of code");
    let all = image(&folder, &["-DTLSF", "-DPOOL", "-DALL"]);
    for image in [small, all] {
        if installed("qemu-system-arm") {
            let mut machine = Command::new("qemu-system-arm");
            machine.args(["-machine", "mps2-an386", "-nographic", "-semihosting-config", "enable=on,target=native"]);
            succeed(machine.arg("-kernel").arg(image));
        }
    }
}
