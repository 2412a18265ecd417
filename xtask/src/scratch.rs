//! A copy of the tree in which lines are changed, to find out whether the tests notice.

use crate::process::{root, target};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The copy.
pub(crate) struct Scratch {
    folder: PathBuf,
    /// Locked while this lives: commands that change the copy take turns.
    _turn: fs::File,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It succeeded.
    Passed,
    /// It failed; its output.
    Failed(String),
    /// It ran into its time limit and was killed.
    TooLong,
}

impl Scratch {
    /// Copies everything that is built to `target/scratch`.
    pub(crate) fn copy() -> Result<Self> {
        let folder = target().join("scratch/tree");
        fs::create_dir_all(&folder)?;
        let turn = fs::File::create(target().join("scratch/turn"))?;
        turn.lock().context("cannot lock the copy of the tree")?;
        for name in ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "layers.dag"] {
            copy_changed(&root().join(name), &folder.join(name))?;
        }
        for name in ["crates", "docs", "testdata", "xtask"] {
            copy_folder(&root().join(name), &folder.join(name))?;
        }
        Ok(Self { folder, _turn: turn })
    }

    /// The path of a file in the copy.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// Runs `check` while `file` contains `text`, and restores the file.
    pub(crate) fn with<R>(&self, file: &str, text: &str, check: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        let path = self.path(file);
        let before = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        fs::write(&path, text)?;
        let checked = check(self);
        fs::write(&path, before)?;
        checked
    }

    /// A cargo command in the copy, with the `cfg` of a model and a target folder of its own.
    pub(crate) fn cargo(&self, cfg: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
        command.args(arguments).current_dir(&self.folder);
        command.env("RUSTFLAGS", format!("--cfg {cfg}")).env("RUST_BACKTRACE", "0");
        command.env("CARGO_TARGET_DIR", target().join("scratch").join(cfg));
        command
    }
}

/// Runs a command for at most `most`, without showing its output.
pub(crate) fn outcome(command: &mut Command, most: Duration) -> Result<Outcome> {
    let output = target().join("scratch/output");
    let file = fs::File::create(&output)?;
    let mut child = command
        .stdout(Stdio::from(file.try_clone()?))
        .stderr(Stdio::from(file))
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let ends = Instant::now() + most;
    loop {
        if let Some(status) = child.try_wait()? {
            let text = String::from_utf8_lossy(&fs::read(&output)?).into_owned();
            return Ok(if status.success() { Outcome::Passed } else { Outcome::Failed(text) });
        }
        if Instant::now() > ends {
            child.kill()?;
            child.wait()?;
            return Ok(Outcome::TooLong);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Replaces the only occurrence of `from` by `to`.
pub(crate) fn replaced(text: &str, from: &str, to: &str) -> Result<String> {
    ensure!(text.matches(from).count() == 1, "`{from}` does not occur exactly once");
    Ok(text.replacen(from, to, 1))
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type()?.is_dir() {
            if name != "target" {
                copy_folder(&path, &to.join(name))?;
            }
        } else if entry.file_type()?.is_file() {
            copy_changed(&path, &to.join(name))?;
        }
    }
    Ok(())
}

/// Copies a file only if it differs, because cargo rebuilds what was written.
fn copy_changed(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(to, bytes)?;
    Ok(())
}
