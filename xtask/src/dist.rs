//! `cargo xtask dist`: the packages of a release, of what `cargo xtask install` installs.
//!
//! ```text
//!  source ─▶ freestone-VERSION.tar.gz                    every file that git tracks
//!         ─▶ install into a stage ─▶ freestone-VERSION-TARGET.tar.gz   a tree that runs where it is unpacked
//!                                 ─▶ four Debian packages              the same files below /usr
//! ```
//!
//! The same source gives the same bytes, wherever it is built: times are the commit's, entries are sorted, and paths of the build are replaced in what the
//! compiler writes ([decision 42](../../docs/decisions/0042-packages.md)).

use crate::install::VERSION;
use crate::process::{cargo_home, command, output, root, run as run_command, target};
use anyhow::{Context, Result, bail, ensure};
use archive::{Content, Entry};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

mod archive;
mod debian;
mod source_archive;
mod trial;

/// What to pack, and how to check it.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where the packages are written: by default below cargo's target folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Install the packages into a Debian system without Rust and without network, and use them there; as root, with debootstrap
    #[arg(long = "try")]
    try_out: bool,
    /// Build the packages once more, from the source archive in another folder, and compare them byte for byte
    #[arg(long)]
    again: bool,
}

/// Builds the packages and checks them as far as asked.
pub(crate) fn run(options: &Options) -> Result<()> {
    source_archive::warn_of_changes()?;
    let seconds = source_archive::seconds()?;
    let out = std::path::absolute(options.out.clone().unwrap_or_else(|| own_target().join("packages")))?;
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}; choose another --out", out.display()))?;
    let mut packages = Vec::new();
    if let Some(source) = source_archive::entries()? {
        packages.push((source_name(), archive::tar_gz(source, &format!("freestone-{VERSION}/"), seconds)?));
    }
    packages.extend(binary_packages(seconds)?);
    for (name, bytes) in &packages {
        fs::write(out.join(name), bytes).with_context(|| format!("cannot write {name} into {}", out.display()))?;
        println!("{:9} KiB  {}", bytes.len().div_ceil(1024), out.join(name).display());
    }
    if options.again {
        build_again(&packages, &out, seconds)?;
    }
    if options.try_out {
        trial::run(&packages, &out, &own_target())?;
    }
    Ok(())
}

/// Apart from what developers build, because the flags of the compiler differ.
fn own_target() -> PathBuf {
    target().join("dist")
}

fn source_name() -> String {
    format!("freestone-{VERSION}.tar.gz")
}

/// The folder at the top of the tarball, and the tarball's name without its ending.
fn tarball_folder() -> Result<String> {
    let machine = output(&mut command("gcc", &["-dumpmachine"]))?;
    Ok(format!("freestone-{VERSION}-{}", machine.trim()))
}

/// The tarball and the Debian packages.
fn binary_packages(seconds: u64) -> Result<Vec<(String, Vec<u8>)>> {
    let (moved, usr) = (own_target().join("stage/moved"), own_target().join("stage/debian"));
    for stage in [&moved, &usr] {
        if stage.exists() {
            fs::remove_dir_all(stage)?;
        }
    }
    install(&["--prefix", "/", "--relocatable", "--destdir"], &moved, seconds)?;
    install(&["--prefix", "/usr", "--destdir"], &usr, seconds)?;
    let files = archive::tree(&moved)?;
    check_contents(&files, &commands(&moved.join("bin/freestone"))?)?;
    let folder = tarball_folder()?;
    let mut packages = vec![(format!("{folder}.tar.gz"), archive::tar_gz(files, &format!("{folder}/"), seconds)?)];
    packages.extend(debian::packages(&usr, &archive::tree(&usr.join("usr"))?, seconds)?);
    Ok(packages)
}

/// Installs in a process of its own, whose builds have flags that leave no trace of the machine.
fn install(arguments: &[&str], stage: &Path, seconds: u64) -> Result<()> {
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let flags = [
        remap(&root(), "/freestone"),
        remap(&own_target(), "/freestone/target"),
        remap(&cargo_home().join("registry/src"), "/registry"),
    ];
    let mut install = Command::new(std::env::current_exe()?);
    install.args(["install", "--strip"]).args(arguments).arg(stage);
    install
        .env("CARGO_TARGET_DIR", own_target())
        .env("CARGO_INCREMENTAL", "0")
        .env("SOURCE_DATE_EPOCH", seconds.to_string());
    install.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")).env_remove("RUSTFLAGS");
    // The command leaves out what it does in a checkout.
    install.env("FREESTONE_PACKAGED", "1");
    let listed = install.stderr(std::process::Stdio::inherit()).output().context("cannot start cargo xtask install")?;
    ensure!(listed.status.success(), "installing into {} failed: {}", stage.display(), listed.status);
    Ok(())
}

/// The subcommands, as its help lists them.
fn commands(freestone: &Path) -> Result<Vec<String>> {
    Ok(listed_commands(&output(Command::new(freestone).arg("--help"))?))
}

fn listed_commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Refuses a tree that lacks something that a package has to have.
fn check_contents(files: &[Entry], commands: &[String]) -> Result<()> {
    ensure!(!commands.is_empty(), "the command's help lists no commands");
    let mut wanted: Vec<String> = commands.iter().map(|name| format!("share/man/man1/freestone-{name}.1")).collect();
    let named = [
        "bin/freestone",
        "lib/libfreestone.so",
        "lib/libfreestone.so.0",
        "lib/libfreestone.a",
        "lib/libfreestone_memory.so",
        "lib/libfreestone_pool.a",
        "lib/libfreestone_tlsf.a",
        "lib/pkgconfig/freestone.pc",
        "lib/cmake/freestone/freestone-config.cmake",
        "include/freestone.h",
        "include/freestone.hpp",
        "share/man/man1/freestone.1",
        "share/man/man3/freestone.3",
        "share/doc/freestone/LICENSE-MIT",
        "share/doc/freestone/LICENSE-APACHE",
        "share/doc/freestone/THIRD-PARTY-NOTICES",
        "share/doc/freestone/docs/guide/introduction.md",
    ];
    wanted.extend(named.map(str::to_owned));
    let is_missing = |wanted: &&String| !files.iter().any(|file| file.path == **wanted);
    let missing: Vec<&str> = wanted.iter().filter(is_missing).map(String::as_str).collect();
    ensure!(missing.is_empty(), "the packages lack {}", missing.join(", "));
    // The path of the build would tell where it was made, and differ elsewhere.
    let here = root().to_string_lossy().into_owned();
    for Entry { path, content } in files {
        if let Content::File { bytes, .. } = content
            && bytes.windows(here.len()).any(|window| window == here.as_bytes())
        {
            bail!("{path} contains {here}, the folder that it was built in");
        }
    }
    Ok(())
}

/// Unpacks the source archive elsewhere, builds the packages of it, and compares.
fn build_again(packages: &[(String, Vec<u8>)], out: &Path, seconds: u64) -> Result<()> {
    let folder = own_target().join("again");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    run_command(Command::new("tar").arg("-xzf").arg(out.join(source_name())).current_dir(&folder))
        .context("the source archive cannot be unpacked")?;
    let source = folder.join(format!("freestone-{VERSION}"));
    let mut dist = Command::new("cargo");
    dist.args(["run", "--quiet", "--locked", "--package", "xtask", "--", "dist", "--out"]).arg(folder.join("packages"));
    dist.current_dir(&source).env("SOURCE_DATE_EPOCH", seconds.to_string());
    // Where cargo builds, and which compiler: as in the new folder.
    for variable in ["CARGO_TARGET_DIR", "CARGO", "CARGO_MANIFEST_DIR"] {
        dist.env_remove(variable);
    }
    run_command(&mut dist)?;
    for (name, bytes) in packages.iter().filter(|(name, _)| *name != source_name()) {
        let again =
            fs::read(folder.join("packages").join(name)).with_context(|| format!("{name} was not built again"))?;
        ensure!(
            again == *bytes,
            "{name} differs when it is built again: compare {} and {}",
            out.display(),
            folder.display()
        );
        println!("the same when built again: {name}");
    }
    Ok(fs::remove_dir_all(&folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_help_are_its_list_without_help_itself() {
        let help = "Your program\n\nUsage: freestone <COMMAND>\n\nCommands:\n  run      Run a command\n             in more lines\n  compare  Compare\n  help     Help\n\nOptions:\n  -h\n";
        assert_eq!(listed_commands(help), ["run", "compare"]);
    }

    #[test]
    fn a_tree_without_the_manual_page_of_a_command_is_refused() {
        let refused = check_contents(&[Entry::file("bin/freestone", "")], &["run".into()]).unwrap_err().to_string();
        assert!(refused.contains("share/man/man1/freestone-run.1") && !refused.contains("bin/freestone,"), "{refused}");
    }
}
