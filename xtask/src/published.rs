//! What the published crates promise to those who depend on them: ranges as requirements, and the oldest compiler.

use crate::process::{command, output, root, run, target};
use anyhow::{Context, Result, bail};
use std::fs;

/// The crates that are published, and their folders; each after those that it needs.
pub(crate) const CRATES: [(&str, &str); 6] = [
    ("freestone-base", "base"),
    ("freestone-os", "os"),
    ("freestone-trace", "trace"),
    ("freestone", "freestone"),
    ("freestone-tlsf", "tlsf"),
    ("freestone-pool", "pool"),
];

/// The features that stable compilers have.
const FEATURES: &str = "freestone/allocator-api2,freestone/allocator-api2-02,freestone-tlsf/allocator-api2";

/// Checks the manifests, and compiles the crates with the oldest compiler that they name, if it is installed.
pub(crate) fn check() -> Result<()> {
    let workspace = read("Cargo.toml")?;
    let dependencies = workspace.split("[workspace.dependencies]").nth(1).context("Cargo.toml lists dependencies")?;
    refuse_exact("Cargo.toml", dependencies.split("\n[").next().unwrap_or_default())?;
    refuse_accidents()?;
    let mut oldest = None;
    for (name, folder) in CRATES {
        let path = format!("crates/{folder}/Cargo.toml");
        let manifest = read(&path)?;
        refuse_exact(&path, &manifest)?;
        refuse_incomplete(&path, &manifest)?;
        let named = value(&manifest, "rust-version").with_context(|| format!("{path} names no rust-version"))?;
        if oldest.get_or_insert(named.clone()) != &named {
            bail!("{name} names Rust {named} as the oldest, others another: they are compiled together");
        }
    }
    let oldest = oldest.context("crates are published")?;
    let installed = output(&mut command("rustup", &["toolchain", "list"])).unwrap_or_default();
    if !installed.lines().any(|line| line.starts_with(&format!("{oldest}-"))) {
        println!(
            "skipped: `rustup toolchain install {oldest} --profile minimal` is needed to compile with Rust {oldest}"
        );
        return Ok(());
    }
    let packages = CRATES.iter().flat_map(|(name, _)| ["--package", name]);
    let arguments =
        [&["run", &oldest, "cargo", "check", "--locked", "--features", FEATURES][..], &packages.collect::<Vec<_>>()];
    // Its own folder: another compiler would have all others build again. The variable is that of the compiler that runs this.
    let mut check = command("rustup", &arguments.concat());
    run(check.env("CARGO_TARGET_DIR", target().join("oldest")).env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN"))
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))
}

/// Refuses a requirement of one version only: two libraries that each want another one could not be in the same program.
fn refuse_exact(path: &str, manifest: &str) -> Result<()> {
    match manifest.lines().find(|line| line.contains("\"=")) {
        Some(line) => {
            bail!("{path}: `{}` is an exact requirement; write a range, Cargo.lock holds the version", line.trim())
        }
        None => Ok(()),
    }
}

/// Refuses a crate whose page would miss what people look for, or whose archive lacks its licences.
fn refuse_incomplete(path: &str, manifest: &str) -> Result<()> {
    let keys = ["description", "keywords", "categories", "license.workspace", "repository.workspace", "rust-version"];
    for key in keys {
        let named = value(manifest, key).or_else(|| value(manifest, &format!("{key}.workspace")));
        named.with_context(|| format!("{path} has no {key}"))?;
    }
    if !manifest.contains("\n[package.metadata.docs.rs]\n") {
        bail!("{path} does not say for which platforms and features docs.rs documents it: [package.metadata.docs.rs]");
    }
    let folder = root().join(path).with_file_name("");
    for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        if !folder.join(file).is_file() {
            bail!("{} is missing: each crate that is published has its own", folder.join(file).display());
        }
    }
    Ok(())
}

/// Crates of the workspace that would be published by accident, and published ones that could not be.
fn refuse_accidents() -> Result<()> {
    let crates = fs::read_dir(root().join("crates")).context("cannot read the folder of the crates")?;
    let mut manifests = vec!["xtask/Cargo.toml".to_owned()];
    for folder in crates {
        manifests.push(format!("crates/{}/Cargo.toml", folder?.file_name().to_string_lossy()));
    }
    for path in manifests.iter().filter(|path| root().join(path).is_file()) {
        let is_published = CRATES.iter().any(|(_, folder)| *path == format!("crates/{folder}/Cargo.toml"));
        let refuses = value(&read(path)?, "publish").is_some_and(|value| value == "false");
        if is_published == refuses {
            bail!(
                "{path}: `publish = false` has to be in the manifests of those crates that `published::CRATES` does not list"
            );
        }
    }
    Ok(())
}

/// The text behind `KEY = ` in a manifest.
fn value(manifest: &str, key: &str) -> Option<String> {
    let line = manifest.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))?;
    Some(line.trim().trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_requirement_is_refused_and_a_range_is_not() {
        assert!(refuse_exact("x", "libc = \"0.2\"\nrustix = { version = \"1.1.6\" }\n").is_ok());
        let refused = refuse_exact("x", "libc = \"0.2\"\nrustix = { version = \"=1.1.6\" }\n").unwrap_err().to_string();
        assert!(refused.contains("rustix") && refused.contains("exact"), "{refused}");
    }

    #[test]
    fn the_crates_are_complete_and_no_other_is_published_by_accident() {
        refuse_accidents().unwrap();
        for (_, folder) in CRATES {
            let path = format!("crates/{folder}/Cargo.toml");
            refuse_incomplete(&path, &read(&path).unwrap()).unwrap();
        }
        let manifest = read("crates/tlsf/Cargo.toml").unwrap().replace("\nkeywords", "\nwords");
        let refused = refuse_incomplete("crates/tlsf/Cargo.toml", &manifest).unwrap_err().to_string();
        assert!(refused.contains("keywords"), "{refused}");
    }

    #[test]
    fn a_crate_is_listed_after_those_that_it_needs() {
        for (n, (name, folder)) in CRATES.iter().enumerate() {
            let manifest = read(&format!("crates/{folder}/Cargo.toml")).unwrap();
            let needs =
                manifest.split("\n[dependencies]\n").nth(1).and_then(|rest| rest.split("\n[").next()).unwrap_or("");
            for (later, _) in &CRATES[n..] {
                assert!(!needs.contains(&format!("{later}.workspace")), "{name} needs {later}");
            }
        }
    }

    #[test]
    fn the_value_of_a_key_is_read_and_another_key_is_not() {
        let manifest = "rust-version.workspace = true\nrust-version = \"1.85\"\n";
        assert_eq!(value(manifest, "rust-version").as_deref(), Some("1.85"));
        assert_eq!(value(manifest, "edition"), None);
    }
}
