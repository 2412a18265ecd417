//! Freestone's own library, `libfreestone.so`.

use crate::allocator::description::Allocator;
use crate::allocator::{checkout, preloading};
use crate::process::own_executable;
use crate::progress;
use anyhow::{Context, Result};

/// Freestone as an allocator. If the lab runs from a checkout, the library is built first.
///
/// # Errors
/// There is no library and none can be built, or the file is not an allocator.
pub(crate) fn find() -> Result<Allocator> {
    let target = checkout::target_folder()?;
    let beside = own_executable::path()?.with_file_name("libfreestone.so");
    let built = target.join("release/libfreestone.so");
    // In a checkout cargo decides whether the library is up to date: otherwise an old one could be measured by mistake.
    if let Some(root) = checkout::root() {
        let spinner = progress::spinner("building libfreestone.so");
        let outcome = checkout::cargo_build(&root, "freestone-capi", &target, &target.join("logs/libfreestone.log"));
        spinner.finish_and_clear();
        if !built.is_file() {
            outcome?;
        }
    }
    let library = [built, beside].into_iter().find(|path| path.is_file()).context(
        "libfreestone.so is not beside the freestone command; build it with `cargo build --release -p freestone-capi`, or \
         name one: --allocator freestone=PATH",
    )?;
    preloading::check_allocator_library(&library)?;
    Ok(Allocator::in_library("freestone", library))
}
