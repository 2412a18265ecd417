//! Where the guide's commands run: a home of their own with Freestone installed, and the machine's compilers.

use crate::install;
use crate::process::{root, target};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most that the commands of one fence may take: some compile.
const SECONDS_MOST: &str = "240";

/// The home; removed with everything in it at the end.
pub(super) struct Stage {
    home: PathBuf,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
    }
}

impl Stage {
    /// Builds what is not built yet, and installs it.
    pub(super) fn set_up() -> Result<Self> {
        // Outside the workspace, where cargo would take the guide's crates for members of it.
        let home = std::env::temp_dir().join(format!("freestone-guide-{}", std::process::id()));
        let stage = Self { home };
        fs::create_dir_all(stage.home.join(".cargo")).context("cannot make a home for the guide's commands")?;
        let prefix = stage.home.join("freestone");
        install::run(&install::Options { prefix, destdir: None, relocatable: false, strip: false })?;
        let crates = root().join("crates");
        let patch = |name: &str, folder: &str| format!("{name}.path = {:?}\n", crates.join(folder));
        let config = format!(
            "[net]\noffline = true\n[patch.crates-io]\n{}{}{}",
            patch("freestone", "freestone"),
            patch("freestone-tlsf", "tlsf"),
            patch("freestone-pool", "pool")
        );
        fs::write(stage.home.join(".cargo/config.toml"), config)?;
        Ok(stage)
    }

    /// A folder for the files of a page.
    pub(super) fn folder_of(&self, page: &str) -> Result<PathBuf> {
        let folder = self.home.join("pages").join(page.trim_end_matches(".md").replace('/', "-"));
        fs::create_dir_all(&folder)?;
        // Go takes the module from the tree.
        let work = format!("go 1.24\n\nuse (\n\t.\n\t{}\n)\n", root().join("go").display());
        fs::write(folder.join("go.work"), work)?;
        // Cargo takes the versions of other crates from here.
        fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
        Ok(folder)
    }

    /// The shell, about to run `script` in `folder`.
    pub(super) fn shell(&self, folder: &Path, script: &str) -> Command {
        let of_user = |variable: &str, below: &str| {
            let home = std::env::var_os("HOME").unwrap_or_default();
            std::env::var_os(variable).unwrap_or_else(|| Path::new(&home).join(below).into_os_string())
        };
        let mut shell = Command::new("timeout");
        shell.args(["-k", "5", SECONDS_MOST, "sh", "-eu", "-c", script]).current_dir(folder);
        shell.env("CARGO_HOME", of_user("CARGO_HOME", ".cargo")).env("RUSTUP_HOME", of_user("RUSTUP_HOME", ".rustup"));
        shell.env("GOCACHE", of_user("GOCACHE", ".cache/go-build")).env("GOPATH", of_user("GOPATH", "go"));
        shell.env("GOFLAGS", "").env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
        shell.env("CARGO_TARGET_DIR", target().join("guide")).env("HOME", &self.home).env("LC_ALL", "C.UTF-8");
        // What the caller's shell has set must not help.
        for variable in ["FREESTONE_LIBRARY", "LD_PRELOAD", "PKG_CONFIG_PATH", "CARGO", "RUSTC", "XDG_CACHE_HOME"] {
            shell.env_remove(variable);
        }
        shell
    }

    /// Those of `names` that the installed command has not.
    pub(super) fn unknown_commands(&self, names: &[String]) -> Vec<String> {
        let has = |name: &String| {
            let mut command = Command::new(self.home.join("freestone/bin/freestone"));
            command.args([name, "--help"]).output().is_ok_and(|output| output.status.success())
        };
        names.iter().filter(|name| !has(name)).map(|name| format!("`freestone {name}` is no command")).collect()
    }
}
