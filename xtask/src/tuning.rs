//! Writes `docs/tuning.md` from the option table, the profiles, and a text about what was measured.

use crate::process::root;
use anyhow::{Context, Result, bail};
use freestone::options::{NEVER_MS, OPTIONS, PROFILES, Profile, Unit};
use std::fmt::Write;
use std::fs;

const HEAD: &str = "\
# Options

<!-- Made by `cargo xtask tuning` from the tables in crates/freestone/src/config.rs and config/profile.rs, and from
     xtask/src/tuning/measured.md: change it there. -->

For users who want to trade memory for time, or to limit what the allocator does. It answers: which options are there, which profiles set several
at once, and what was each measured to change?

Set an option in the environment (`FREESTONE_DECAY_MS=100`), in the program with the link-time symbol `freestone_options` (C text, as in
`char freestone_options[] = \"decay_ms=100,bin_max=64\";`), or through the API; the last one wins. Unknown or malformed options are reported on
stderr and ignored. Programs that run with more rights than their caller (setuid) ignore the environment and the symbol,
except that these can raise `harden` above its default.

At `harden=full` preload the library of checked memory functions as well: `LD_PRELOAD='libfreestone.so libfreestone_memory.so'`.

| option | unit | default | range | effect |
|---|---|---|---|---|
";

const PROFILES_HEAD: &str = "
## Profiles

The option `profile` sets several options at once; those that it does not list keep their defaults. Explicit options override the profile.

| profile | for | sets |
|---|---|---|
";

/// What was measured, maintained by hand: the figures are from one machine on one day.
const MEASURED: &str = include_str!("tuning/measured.md");

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Milliseconds => "ms",
        Unit::Bytes => "bytes (`k`, `m`, `g`)",
        Unit::Blocks => "blocks",
        Unit::Allocations => "allocations",
        Unit::Words(_) => "word",
        Unit::Path => "path",
        _ => "number",
    }
}

/// The page as it should be.
fn page() -> String {
    let mut page = HEAD.to_owned();
    for spec in OPTIONS {
        let default = match spec.default() {
            "" => "none".to_owned(),
            value => format!("`{value}`"),
        };
        // Writing into a `String` cannot fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {default} | {} | {} |",
            spec.key,
            unit(spec.unit),
            spec.range(),
            spec.effect()
        );
    }
    page.push_str(PROFILES_HEAD);
    for profile in PROFILES {
        let _ = writeln!(page, "| `{}` | {} | {} |", profile.name, profile.purpose(), sets(profile));
    }
    page + MEASURED
}

/// The options of a profile, as a user would write them.
fn sets(profile: &Profile) -> String {
    let options = profile.options.split(',').filter_map(|option| {
        let (key, value) = option.split_once('=')?;
        let is_endless = value.parse() == Ok(usize::MAX) || (key == "decay_ms" && value.parse() == Ok(NEVER_MS));
        Some(if is_endless { format!("`{key}` without limit") } else { format!("`{option}`") })
    });
    let options: Vec<String> = options.collect();
    if options.is_empty() { "nothing".into() } else { options.join(", ") }
}

/// Writes the page.
pub(crate) fn write() -> Result<()> {
    fs::write(root().join("docs/tuning.md"), page()).context("cannot write docs/tuning.md")
}

/// Fails if the page is stale.
pub(crate) fn check() -> Result<()> {
    let now = fs::read_to_string(root().join("docs/tuning.md")).context("cannot read docs/tuning.md")?;
    if now != page() {
        bail!("docs/tuning.md is out of date: run `cargo xtask tuning` and commit the page");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use freestone::door::{Settings, find};

    #[test]
    fn every_option_has_its_row() {
        let page = page();
        assert!(OPTIONS.iter().all(|spec| page.contains(&format!("| `{}` |", spec.key))));
        assert!(PROFILES.iter().all(|profile| page.contains(&format!("| `{}` |", profile.name))));
    }

    #[test]
    fn what_was_measured_are_options_with_values_they_can_have() {
        for named in MEASURED.split("| `").skip(1) {
            let (key, value) = named.split_once('`').and_then(|(option, _)| option.split_once('=')).unwrap();
            let index = find(key.as_bytes()).unwrap_or_else(|| panic!("{key} is no option"));
            assert_eq!(Settings::new().set(index, value.as_bytes()), Ok(()), "{key}={value}");
        }
    }
}
