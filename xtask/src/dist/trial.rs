//! `cargo xtask dist --try`: the packages in a Debian system that has compilers for C and C++, but no Rust and no network.
//!
//! The system is made once by `debootstrap`. Each trial runs in an overlay over it, so that what a package leaves behind is all that is in the overlay.

use crate::process::{is_installed, output, run as run_command};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a C or C++ developer has.
const INSTALLED: &str = "gcc,g++,libc6-dev,pkg-config,cmake,make";

/// What runs in the system: a name, and a script that stops at the first failure. The packages are in /packages.
const TRIALS: [(&str, &str); 2] =
    [("tarball", include_str!("trial/tarball.sh")), ("debian", include_str!("trial/debian.sh"))];

/// What both use after they have installed Freestone.
const USE: &str = include_str!("trial/use.sh");

/// Mounts the overlay in a namespace of its own and runs the script.
const ENTER: &str = r#"
mount -t overlay overlay -o "lowerdir=$1/base,upperdir=$2/upper,workdir=$2/work" "$2/root"
mount -t proc proc "$2/root/proc"
exec chroot "$2/root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 sh -eu /trial.sh
"#;

/// Tries each kind of package.
pub(super) fn run(packages: &[(String, Vec<u8>)], out: &Path, target: &Path) -> Result<()> {
    let folder = target.join("root");
    make_base(&folder)?;
    for (name, script) in TRIALS {
        let overlay = folder.join(name);
        if overlay.exists() {
            fs::remove_dir_all(&overlay)?;
        }
        for part in ["upper/packages", "work", "root"] {
            fs::create_dir_all(overlay.join(part))?;
        }
        for (package, _) in packages {
            fs::copy(out.join(package), overlay.join("upper/packages").join(package))?;
        }
        fs::write(overlay.join("upper/trial.sh"), script)?;
        fs::write(overlay.join("upper/use.sh"), USE)?;
        let mut enter = Command::new("unshare");
        enter.args(["--mount", "--pid", "--fork", "--net", "sh", "-euc", ENTER, "sh"]).arg(&folder).arg(&overlay);
        let said = output(&mut enter)
            .with_context(|| format!("the trial {name} failed; its files are in {}", overlay.display()))?;
        println!("== {name}\n{said}");
        fs::remove_dir_all(&overlay)?;
    }
    println!("{} trials passed in a Debian system without Rust and without network", TRIALS.len());
    Ok(())
}

fn make_base(folder: &Path) -> Result<()> {
    if folder.join("base.done").exists() {
        return Ok(());
    }
    if !is_installed("debootstrap") {
        bail!(
            "the packages are tried in a Debian system, which debootstrap makes: install debootstrap and run this as root"
        );
    }
    let base = folder.join("base");
    if base.exists() {
        fs::remove_dir_all(&base)?;
    }
    fs::create_dir_all(folder)?;
    println!("making a Debian system in {}: some minutes", base.display());
    run_command(
        Command::new("debootstrap")
            .args(["--variant=minbase", &format!("--include={INSTALLED}"), "bookworm"])
            .arg(&base)
            .stdout(fs::File::create(folder.join("debootstrap.log"))?),
    )
    .context("see debootstrap.log")?;
    Ok(fs::write(folder.join("base.done"), "")?)
}
