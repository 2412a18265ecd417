//! `cargo xtask install`: the files that a package of Freestone consists of.

use crate::archives;
use crate::process::{cargo, root, run as run_command, target};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let folder = to.parent().context("a file has a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}; choose another --prefix", folder.display()))?;
    // Processes that have the old library mapped keep its file.
    let _ = fs::remove_file(to);
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    println!("{}", to.display());
    Ok(())
}

fn link(folder: &Path, name: &str, to: &str) -> Result<()> {
    let at = folder.join(name);
    let _ = fs::remove_file(&at);
    symlink(to, &at).with_context(|| format!("cannot link {}", at.display()))?;
    println!("{} -> {to}", at.display());
    Ok(())
}

/// Fills the places of a template.
fn fill(template: &str, prefix: &Path) -> String {
    template
        .replace("@prefix@", &prefix.to_string_lossy())
        .replace("@PREFIX@", &prefix.to_string_lossy())
        .replace("@VERSION@", VERSION)
        .replace("@version@", VERSION)
}

fn install_filled(from: &Path, to: &Path, prefix: &Path) -> Result<()> {
    let text = fs::read_to_string(from).with_context(|| format!("cannot read {}", from.display()))?;
    copy(from, to, 0o644)?;
    fs::write(to, fill(&text, prefix)).with_context(|| format!("cannot write {}", to.display()))
}

/// Builds the release and installs it under `destdir/prefix`.
pub(crate) fn run(prefix: &Path, destdir: Option<&Path>) -> Result<()> {
    let prefix = std::path::absolute(prefix)?;
    let top = match destdir {
        Some(destdir) => std::path::absolute(destdir)?.join(prefix.strip_prefix("/")?),
        None => prefix.clone(),
    };
    // One after the other: built together they would share features, and the library must not get those of the tools.
    run_command(&mut cargo(&["build", "--release", "--package", "freestone-capi"]))?;
    run_command(&mut cargo(&["build", "--release", "--package", "freestone-memory"]))?;
    run_command(&mut cargo(&["build", "--release", "--package", "freestone-lab"]))?;
    // The clock for counting instructions is in the workspace of the peers.
    let beside = target().join("peers");
    let clock = ["build", "--release", "--manifest-path", "crates/peers/Cargo.toml", "--package", "counting-clock"];
    run_command(cargo(&clock).env("CARGO_TARGET_DIR", &beside))?;
    let (built, capi, lib) = (target().join("release"), root().join("crates/capi"), top.join("lib"));
    for name in ["libfreestone.so", "libfreestone_memory.so"] {
        let (file, soname) = (format!("{name}.{VERSION}"), format!("{name}.0"));
        copy(&built.join(name), &lib.join(&file), 0o755)?;
        link(&lib, &soname, &file)?;
        link(&lib, name, &soname)?;
    }
    copy(&built.join("libfreestone.a"), &lib.join("libfreestone.a"), 0o644)?;
    for name in archives::NAMES {
        let archive = archives::build(name, None, &built)?;
        copy(&archive, &lib.join(format!("libfreestone_{name}.a")), 0o644)?;
        install_filled(
            &capi.join(format!("pkg/freestone_{name}.pc.in")),
            &lib.join(format!("pkgconfig/freestone_{name}.pc")),
            &prefix,
        )?;
    }
    copy(&built.join("freestone"), &top.join("bin/freestone"), 0o755)?;
    copy(&beside.join("release/libcounting_clock.so"), &lib.join("freestone/libcounting_clock.so"), 0o755)?;
    for header in files(&capi.join("include"))? {
        copy(&header, &top.join("include").join(header.file_name().context("a header has a name")?), 0o644)?;
    }
    for page in files(&capi.join("man"))? {
        copy(&page, &top.join("share/man/man3").join(page.file_name().context("a page has a name")?), 0o644)?;
    }
    install_filled(&capi.join("pkg/freestone.pc.in"), &lib.join("pkgconfig/freestone.pc"), &prefix)?;
    let cmake = lib.join("cmake/freestone");
    for file in ["freestone-config.cmake", "freestone-config-version.cmake"] {
        install_filled(&capi.join(format!("pkg/{file}.in")), &cmake.join(file), &prefix)?;
    }
    Ok(())
}

/// The files of a folder, sorted by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_names_prefix_and_version() {
        assert_eq!(fill("@prefix@/lib @VERSION@", Path::new("/opt/f")), format!("/opt/f/lib {VERSION}"));
    }
}
