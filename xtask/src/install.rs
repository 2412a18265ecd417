//! `cargo xtask install`: the library, its headers and what build systems need to find them.

use crate::run::{cargo, library, root, target_dir};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The version of the library and its packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds and installs under `prefix`, with `destdir` put in front of it while copying.
pub(crate) fn run(prefix: &Path, destdir: Option<&Path>) -> Result<()> {
    let library = library()?;
    cargo(&["build", "--quiet", "--release", "--package", "freestone-lab"])?;
    let place = match destdir {
        Some(destdir) => destdir.join(prefix.strip_prefix("/").unwrap_or(prefix)),
        None => prefix.to_path_buf(),
    };
    let capi = root().join("crates/capi");
    let lib = place.join("lib");
    copy(&library, &lib.join(format!("libfreestone.so.{VERSION}")))?;
    link(&format!("libfreestone.so.{VERSION}"), &lib.join("libfreestone.so.0"))?;
    link("libfreestone.so.0", &lib.join("libfreestone.so"))?;
    copy(&library.with_extension("a"), &lib.join("libfreestone.a"))?;
    copy(&target_dir().join("release/freestone"), &place.join("bin/freestone"))?;
    for header in fs::read_dir(capi.join("include"))? {
        let header = header?.path();
        copy(&header, &place.join("include").join(header.file_name().unwrap_or_default()))?;
    }
    fill(&capi.join("pkg/freestone.pc.in"), &lib.join("pkgconfig/freestone.pc"), prefix)?;
    let cmake = lib.join("cmake/freestone");
    fill(&capi.join("pkg/freestone-config.cmake.in"), &cmake.join("freestone-config.cmake"), prefix)?;
    let version = capi.join("pkg/freestone-config-version.cmake.in");
    if version.exists() {
        fill(&version, &cmake.join("freestone-config-version.cmake"), prefix)?;
    }
    for page in fs::read_dir(capi.join("man")).into_iter().flatten() {
        let page = page?.path();
        let section = page.extension().unwrap_or_default().to_string_lossy().into_owned();
        copy(&page, &place.join(format!("share/man/man{section}")).join(page.file_name().unwrap_or_default()))?;
    }
    eprintln!("installed under {}", place.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn link(target: &str, at: &Path) -> Result<()> {
    if at.symlink_metadata().is_ok() {
        fs::remove_file(at)?;
    }
    symlink(target, at).with_context(|| format!("cannot link {}", at.display()))
}

/// Copies a template with its `@NAME@`s filled in.
fn fill(template: &Path, to: &Path, prefix: &Path) -> Result<()> {
    let text = fs::read_to_string(template).with_context(|| format!("cannot read {}", template.display()))?;
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::write(to, text.replace("@PREFIX@", &prefix.to_string_lossy()).replace("@VERSION@", VERSION))?;
    Ok(())
}
