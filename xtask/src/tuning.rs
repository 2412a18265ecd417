//! `docs/tuning.md`, made from the option table.

use crate::process::root;
use anyhow::{Context, Result, bail};
use freestone::config::{OPTIONS, Unit};
use std::fmt::Write;
use std::fs;

const HEAD: &str = "\
# Tuning

<!-- Made by `cargo xtask tuning` from the table in crates/freestone/src/config.rs: change it there. -->

An option comes from the environment (`FREESTONE_DECAY_MS=100`), from the link-time symbol `freestone_options`
(`const char *` text as `char freestone_options[] = \"decay_ms=100,bin_max=64\";`), or from the API; the last one wins.
Unknown or malformed options are named on stderr and ignored. None acts in a setuid program.

| option | unit | default | range | effect |
|---|---|---|---|---|
";

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Milliseconds => "ms",
        Unit::Bytes => "bytes (`k`, `m`, `g`)",
        Unit::Blocks => "blocks",
        Unit::Words(_) => "word",
        Unit::Path => "path",
        #[allow(unreachable_patterns)]
        _ => "number",
    }
}

/// The page as it should be.
fn page() -> String {
    let mut page = HEAD.to_owned();
    for spec in &OPTIONS {
        let default = if spec.default.is_empty() { "none".to_owned() } else { format!("`{}`", spec.default) };
        // Writing into a `String` cannot fail.
        let _ =
            writeln!(page, "| `{}` | {} | {default} | {} | {} |", spec.key, unit(spec.unit), spec.range(), spec.effect);
    }
    page
}

/// Writes the page.
pub(crate) fn write() -> Result<()> {
    fs::write(root().join("docs/tuning.md"), page()).context("cannot write docs/tuning.md")
}

/// Fails if the page is stale.
pub(crate) fn check() -> Result<()> {
    let now = fs::read_to_string(root().join("docs/tuning.md")).context("cannot read docs/tuning.md")?;
    if now != page() {
        bail!("docs/tuning.md is stale: run `cargo xtask tuning` and commit it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_its_row() {
        let page = page();
        assert!(OPTIONS.iter().all(|spec| page.contains(&format!("| `{}` |", spec.key))));
    }
}
