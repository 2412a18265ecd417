//! The files of the source archive: those that git tracks.

use super::archive::Entry;
use crate::process::{command, output, root};
use anyhow::{Context, Result};

/// Whether this is a checkout, and not an unpacked archive.
fn is_checkout() -> bool {
    root().join(".git").exists()
}

/// Every file of the source; `None` where nothing tells them from what was built.
pub(super) fn entries() -> Result<Option<Vec<Entry>>> {
    if !is_checkout() {
        return Ok(None);
    }
    let listed = output(&mut command("git", &["ls-files", "-z"]))?;
    listed.split_terminator('\0').map(|path| Entry::read(&root(), path)).collect::<Result<_>>().map(Some)
}

/// When the source was last changed, in seconds since 1970: SOURCE_DATE_EPOCH, else the time of the commit.
pub(super) fn seconds() -> Result<u64> {
    let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => seconds,
        Err(_) if is_checkout() => output(&mut command("git", &["log", "-1", "--format=%ct"]))?,
        Err(_) => anyhow::bail!("set SOURCE_DATE_EPOCH: without git nothing tells when the source was changed"),
    };
    seconds.trim().parse().with_context(|| format!("SOURCE_DATE_EPOCH is `{}`, not seconds since 1970", seconds.trim()))
}

/// Says so if the checkout has changes that no commit has.
pub(super) fn warn_of_changes() -> Result<()> {
    if is_checkout() && !output(&mut command("git", &["status", "--porcelain"]))?.is_empty() {
        println!("note: the checkout has changes; the packages have them too, and nobody can make them again");
    }
    Ok(())
}
