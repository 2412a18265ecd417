//! `cargo xtask release`: checks that what is published can be, and prints the commands that publish it. It publishes nothing itself.
//!
//! | released | how |
//! |---|---|
//! | the crates of `published::CRATES`, those that others need first | `cargo publish` |
//! | the Go module, a folder of the repository | the tag `go/vVERSION` |
//! | source archive, tarball, Debian packages | `cargo xtask dist --again --try` |

use crate::install::VERSION;
use crate::process::{cargo, cargo_home, command, is_installed, output, root, run as run_command, target};
use crate::published::{self, CRATES};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

/// Files that name the version, and how.
const VERSIONS: [(&str, &str); 5] = [
    ("crates/capi/include/freestone.h", "#define FREESTONE_VERSION_MAJOR {major}\n"),
    ("crates/capi/include/freestone.h", "#define FREESTONE_VERSION_MINOR {minor}\n"),
    ("crates/capi/include/freestone.h", "#define FREESTONE_VERSION_PATCH {patch}\n"),
    ("crates/capi/man/freestone.3", "\"freestone {major}.{minor}.{patch}\""),
    ("docs/guide/getting-started/go.md", "freestone/go v{major}.{minor}.{patch}"),
];

/// Checks everything, and prints what is left to do.
pub(crate) fn run() -> Result<()> {
    published::check()?;
    let unnamed = unnamed_versions(VERSION, |file| Ok(fs::read_to_string(root().join(file))?))?;
    ensure!(unnamed.is_empty(), "another version than {VERSION} is named: {}", unnamed.join("; "));
    compare_interfaces()?;
    build_book()?;
    let folder = target().join("release-check");
    forget_packed_crates(&folder)?;
    // Together: each is then compiled with the others as they will be published, before the registry has any of them.
    let mut publish = cargo(&[&["publish", "--dry-run", "--locked", "--allow-dirty"], &packages()[..]].concat());
    run_command(publish.env("CARGO_TARGET_DIR", folder))?;
    println!("{}", instructions(VERSION));
    Ok(())
}

/// Removes what an earlier check has built in `folder`, and the crates that it packed from where cargo unpacks them: to cargo, a version of a crate
/// is the same for ever.
fn forget_packed_crates(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let unpacked = cargo_home().join("registry/src");
    let Ok(registries) = fs::read_dir(&unpacked) else { return Ok(()) };
    for registry in registries {
        let registry = registry?;
        // The folder of a registry that is a folder itself has no host in its name.
        if registry.file_name().to_string_lossy().starts_with('-') {
            for (name, _) in CRATES {
                let krate = registry.path().join(format!("{name}-{VERSION}"));
                if krate.exists() {
                    fs::remove_dir_all(&krate).with_context(|| format!("cannot remove {}", krate.display()))?;
                }
            }
        }
    }
    Ok(())
}

/// Compares the interfaces of the crates with those of the last release.
fn compare_interfaces() -> Result<()> {
    if !is_installed("cargo-semver-checks") {
        println!(
            "skipped: `cargo install cargo-semver-checks` is needed to compare the interfaces with the last release"
        );
        return Ok(());
    }
    let tags = output(&mut command("git", &["tag", "--list", "v*", "--sort=-version:refname"]))?;
    let Some(last) = tags.lines().next() else {
        println!("no release is tagged yet: there is no interface to compare with");
        return Ok(());
    };
    run_command(&mut cargo(&[&["semver-checks", "--baseline-rev", last], &packages()[..]].concat()))
}

/// The published crates, as arguments of cargo.
fn packages() -> Vec<&'static str> {
    CRATES.iter().flat_map(|(name, _)| ["--package", name]).collect()
}

/// Makes a book of the guide, which is readable as it is, too.
fn build_book() -> Result<()> {
    if !is_installed("mdbook") {
        println!("skipped: `cargo install mdbook` is needed to make a book of docs/guide");
        return Ok(());
    }
    run_command(command("mdbook", &["build", "docs/guide", "--dest-dir"]).arg(target().join("book")))
}

/// The files that do not name the version where they have to.
fn unnamed_versions(version: &str, read: impl Fn(&str) -> Result<String>) -> Result<Vec<String>> {
    let mut numbers = version.split('.');
    let mut number = || numbers.next().with_context(|| format!("{version} is not three numbers"));
    let (major, minor, patch) = (number()?, number()?, number()?);
    let mut unnamed = Vec::new();
    for (file, pattern) in VERSIONS {
        let wanted = pattern.replace("{major}", major).replace("{minor}", minor).replace("{patch}", patch);
        if !read(file)?.contains(&wanted) {
            unnamed.push(format!("{file} lacks `{}`", wanted.trim()));
        }
    }
    Ok(unnamed)
}

/// What whoever releases does.
fn instructions(version: &str) -> String {
    format!(
        "Everything can be published. To release {version}:\n\
         1. Head the changes of CHANGELOG.md with the version and the date, and commit.\n\
         2. cargo xtask test && cargo xtask dist --again --try\n\
         3. git tag v{version} && git tag go/v{version} && git push --tags\n\
         4. cargo publish {}\n\
         5. Attach the files of `dist` to the release.",
        packages().join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_names_the_version_names_that_of_the_workspace() {
        let read = |file: &str| Ok(fs::read_to_string(root().join(file))?);
        assert_eq!(unnamed_versions(VERSION, read).unwrap(), [""; 0]);
        assert_eq!(unnamed_versions("9.9.9", read).unwrap().len(), VERSIONS.len());
    }

    #[test]
    fn the_module_for_go_gets_a_tag_of_its_own_and_each_crate_is_published() {
        let text = instructions("1.2.3");
        assert!(text.contains("git tag v1.2.3 && git tag go/v1.2.3"), "{text}");
        assert!(CRATES.iter().all(|(name, _)| text.contains(&format!("--package {name}"))), "{text}");
    }
}
