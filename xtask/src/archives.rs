//! `cargo xtask archives`: `libfreestone_tlsf.a` and `libfreestone_pool.a`, for programs that have neither a C library nor an operating system.
//!
//! ```text
//!  crates/bounded ─▶ a static library with all of Rust's `core` ─▶ one object of what the functions need ─▶ an archive of that
//!                    cargo                                          linker                                  only `freestone_tlsf_*` stay global
//! ```
//!
//! So a program may link both archives, and Rust code of its own beside them: no symbol is in two.

use crate::process::{cargo, command, has_target, is_installed, output, root, run, target as cargo_target};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The two libraries, by the name of their header and of the feature of the crate.
pub(crate) const NAMES: [&str; 2] = ["tlsf", "pool"];

/// Builds both into a folder.
pub(crate) fn build_all(target: Option<&str>, out: Option<PathBuf>) -> Result<()> {
    if let Some(name) = target.filter(|name| !has_target(name)) {
        bail!("`rustup target add {name}` is needed");
    }
    let out = out.unwrap_or_else(|| folder_of(target));
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}; choose another --out", out.display()))?;
    for name in NAMES {
        println!("{}", build(name, target, &out)?.display());
    }
    Ok(())
}

/// Where cargo leaves what it builds for a target.
fn folder_of(target: Option<&str>) -> PathBuf {
    cargo_target().join(target.unwrap_or_default()).join("release")
}

/// Builds one of them.
pub(crate) fn build(name: &str, target: Option<&str>, out: &Path) -> Result<PathBuf> {
    let features = format!("{name},archive");
    let mut compile =
        cargo(&["rustc", "--quiet", "--release", "--package", "freestone-bounded", "--crate-type", "staticlib"]);
    compile.args(["--features", &features]).args(target.iter().flat_map(|target| ["--target", target]));
    if target.is_some_and(|target| target.contains("-none-")) {
        // Where memory for code is scarce.
        compile.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s");
    }
    run(&mut compile)?;
    let whole = folder_of(target).join("libfreestone_bounded.a");
    let object = out.join(format!("freestone_{name}.o"));
    run(tool("gcc-ld/ld.lld")?
        .arg("-r")
        .args(functions(name)?.iter().flat_map(|name| ["-u", name]))
        .arg(whole)
        .arg("-o")
        .arg(&object))?;
    let keep = format!("--keep-global-symbol=freestone_{name}_*");
    // The compiler's own library comes with its bitcode, which tools of another version of LLVM stumble over.
    let bitcode = ["--remove-section=.llvmbc", "--remove-section=.llvmcmd"];
    run(tool("rust-objcopy")?.args(["--strip-debug", "--wildcard", &keep]).args(bitcode).arg(&object))?;
    let archive = out.join(format!("libfreestone_{name}.a"));
    let _ = fs::remove_file(&archive);
    // The system's `ar` makes no index of another processor's objects.
    let usual = if target.is_some() && is_installed("llvm-ar") { "llvm-ar" } else { "ar" };
    let archiver = std::env::var("AR").unwrap_or_else(|_| usual.into());
    // Without times and owners: the same source gives the same bytes.
    run(command(&archiver, &["rcsD"]).arg(&archive).arg(&object))?;
    fs::remove_file(&object)?;
    Ok(archive)
}

/// The functions that a header declares.
fn functions(name: &str) -> Result<Vec<String>> {
    let header = root().join(format!("crates/capi/include/freestone_{name}.h"));
    let text = fs::read_to_string(&header).with_context(|| format!("cannot read {}", header.display()))?;
    Ok(declared(&text, &format!("freestone_{name}_")))
}

/// The names with a prefix that are declared as functions: a declaration ends with the attribute that it throws nothing.
fn declared(header: &str, prefix: &str) -> Vec<String> {
    let code = header.split("*/").map(|piece| piece.split("/*").next().unwrap_or(""));
    let code: String = code.collect();
    let declarations = code.split(';').filter_map(|declaration| {
        let start = declaration.match_indices(prefix).map(|(at, _)| &declaration[at..]);
        let names = start.filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
            rest[end..].starts_with('(').then(|| rest[..end].to_owned())
        });
        names.last()
    });
    declarations.collect()
}

/// A tool of the Rust toolchain.
fn tool(name: &str) -> Result<Command> {
    let rustc =
        |question: &[&str]| Ok::<_, anyhow::Error>(PathBuf::from(output(&mut command("rustc", question))?.trim()));
    let (folder, sysroot) = (rustc(&["--print", "target-libdir"])?, rustc(&["--print", "sysroot"])?);
    let path = folder.with_file_name("bin").join(name);
    if !path.is_file() {
        bail!("{} is missing: `rustup component add llvm-tools`", path.display());
    }
    let mut command = Command::new(path);
    command.env("LD_LIBRARY_PATH", sysroot.join("lib"));
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found_and_attributes_and_comments_are_not() {
        let header = "/* freestone_x_not(); */ ATTR(1) FREED_BY(freestone_x_free)\nvoid *freestone_x_malloc(freestone_x_t *x) NOTHROW;\n\
                      typedef struct freestone_x freestone_x_t;\nvoid freestone_x_free(freestone_x_t *x) NOTHROW;\n\
                      int freestone_x_walk(int (*visit)(freestone_x_block_t *));";
        assert_eq!(declared(header, "freestone_x_"), ["freestone_x_malloc", "freestone_x_free", "freestone_x_walk"]);
    }
}
