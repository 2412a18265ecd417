//! Freestone's own library, `libfreestone.so`.

use crate::allocator::checkout::Checkout;
use crate::allocator::description::Allocator;
use crate::allocator::{installation, preloading};
use crate::progress;
use anyhow::Result;
use std::path::PathBuf;

/// Freestone as an allocator. If the lab runs from a checkout, the library is built first; else it is the installed one.
///
/// # Errors
/// There is no library and none can be built, or the file is not an allocator.
pub(crate) fn find() -> Result<Allocator> {
    let library =
        Checkout::of_this_command().map_or_else(installation::freestone_library, |checkout| build(&checkout))?;
    preloading::check_allocator_library(&library)?;
    Ok(Allocator::in_library("freestone", library))
}

/// Cargo decides whether the library is up to date: otherwise an old one could be measured by mistake.
fn build(checkout: &Checkout) -> Result<PathBuf> {
    let library = checkout.built().join("libfreestone.so");
    let spinner = progress::spinner("building libfreestone.so");
    let outcome = checkout.build("freestone-capi");
    spinner.finish_and_clear();
    if library.is_file() { Ok(library) } else { outcome.map(|_| library) }
}
