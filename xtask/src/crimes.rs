//! `cargo xtask crimes`: the suite of heap crimes (`crates/capi/tests/crimes`), at each level of hardening or under other allocators.

use crate::process::{cargo, run as run_command};
use anyhow::{Result, ensure};
use std::path::{Path, absolute};

/// Compares the table with the page, writes it there (`bless`), or prints that of other allocators.
pub(crate) fn run(under: &[String], bless: bool) -> Result<()> {
    let mut command = cargo(&["test", "--package", "freestone-capi", "--test", "crimes"]);
    if bless {
        command.env("CRIMES_BLESS", "1");
    }
    if !under.is_empty() {
        let under = under.iter().map(|text| allocator(text)).collect::<Result<Vec<_>>>()?;
        command.env("CRIMES_UNDER", under.join(";"));
        command.args(["--", "--ignored", "--nocapture", "the_table_of_other_allocators"]);
    }
    run_command(&mut command)
}

/// Completes `[NAME=]LIBRARY[,VARIABLE=VALUE]…` to what the suite reads: with a name, and with a path that holds in any folder.
fn allocator(text: &str) -> Result<String> {
    let (library, variables) =
        text.split_once(',').map_or((text, String::new()), |(at, rest)| (at, format!(",{rest}")));
    if library == "system" {
        return Ok(format!("system={variables}"));
    }
    let (name, path) = match library.split_once('=') {
        Some((name, path)) => (name.to_owned(), Path::new(path)),
        None => {
            let path = Path::new(library);
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            (stem.trim_start_matches("lib").trim_start_matches("peer_").to_owned(), path)
        }
    };
    ensure!(path.is_file(), "{} is no library: name one, as in --under name=path/to/library.so", path.display());
    Ok(format!("{name}={}{variables}", absolute(path)?.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_gets_its_name_from_its_file() {
        let file = std::env::temp_dir().join(format!("libpeer_some-{}.so", std::process::id()));
        std::fs::write(&file, "").unwrap();
        let named = format!("some-{}={},A=b,C=d", std::process::id(), file.display());
        assert_eq!(allocator(&format!("{},A=b,C=d", file.display())).unwrap(), named);
        assert_eq!(allocator(&format!("x={}", file.display())).unwrap(), format!("x={}", file.display()));
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn the_systems_allocator_needs_no_library() {
        assert_eq!(allocator("system").unwrap(), "system=");
        assert_eq!(allocator("system,GLIBC_TUNABLES=x").unwrap(), "system=,GLIBC_TUNABLES=x");
    }

    #[test]
    fn a_library_that_is_not_there_is_refused() {
        assert!(allocator("/nowhere/lib.so").unwrap_err().to_string().contains("/nowhere/lib.so"));
    }
}
