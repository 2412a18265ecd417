//! The folder in which one program of the suite works: its inputs are written and prepared before any run is measured.

use crate::allocator::description::Allocator;
use crate::process::scratch_file::ScratchFolder;
use crate::program_suite::Program;
use anyhow::{Context, Result, bail};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// The folder of one program; removed with the value.
pub(crate) struct Workshop(ScratchFolder);

impl Workshop {
    /// Makes the folder, writes the inputs of `program` into it, and runs its preparation.
    ///
    /// # Errors
    /// A file cannot be written, or the preparation fails; the message has its last words.
    pub(crate) fn of(program: &Program) -> Result<Self> {
        let folder = ScratchFolder::new(program.name).context("no folder for the inputs")?;
        for (name, contents) in program.inputs {
            fs::write(folder.path().join(name), contents()).with_context(|| format!("input {name}"))?;
        }
        if !program.prepare.is_empty() {
            let mut shell = Command::new("sh");
            shell.args(["-ec", program.prepare]).current_dir(folder.path()).env_remove("LD_PRELOAD");
            let output = shell.stdin(Stdio::null()).output().context("sh could not be started")?;
            if !output.status.success() {
                let messages = String::from_utf8_lossy(&output.stderr);
                bail!("its preparation ended with {}: {}", output.status, messages.lines().last().unwrap_or("no word"));
            }
        }
        Ok(Self(folder))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The allocators, each library that some user may not read copied into the folder: postgres runs as a user of its own, and the loader goes on
    /// without a library that it cannot open.
    ///
    /// # Errors
    /// A library cannot be copied.
    pub(crate) fn lend(&self, allocators: Vec<Allocator>) -> Result<Vec<Allocator>> {
        let lend = |(number, one): (usize, Allocator)| match &one.library {
            Some(library) if !can_be_read_by_all(library).with_context(|| format!("{}", library.display()))? => {
                let name = library.file_name().unwrap_or_default().to_string_lossy();
                let copy = self.path().join(format!("allocator-{number}-{name}"));
                fs::copy(library, &copy)
                    .and_then(|_| fs::set_permissions(&copy, Permissions::from_mode(0o644)))
                    .with_context(|| format!("{} could not be copied", library.display()))?;
                Ok(Allocator { library: Allocator::in_library(&one.name, copy).library, ..one })
            }
            _ => Ok(one),
        };
        allocators.into_iter().enumerate().map(lend).collect()
    }
}

/// Whether all users may read `file` and enter the folders on the way to it.
fn can_be_read_by_all(file: &Path) -> io::Result<bool> {
    let grants = |path: &Path, bit: u32| Ok::<_, io::Error>(fs::metadata(path)?.mode() & bit != 0);
    let mut is_open = grants(file, 0o004)?;
    for folder in file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
        is_open &= grants(folder, 0o001)?;
    }
    Ok(is_open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_copied_only_if_other_users_cannot_read_it() {
        let program = Program { inputs: &[], prepare: "", ..*crate::program_suite::catalogue::find("jq").unwrap() };
        let workshop = Workshop::of(&program).unwrap();
        let closed = ScratchFolder::new("closed").unwrap();
        let library = closed.path().join("libx.so");
        fs::write(&library, "x").unwrap();
        fs::set_permissions(&library, Permissions::from_mode(0o640)).unwrap();
        let path_of = |lent: &[Allocator]| lent.first().unwrap().library.clone().unwrap();
        let lend = || workshop.lend(vec![Allocator::in_library("x", library.clone()), Allocator::system()]).unwrap();

        let lent = lend();
        assert_eq!(lent.get(1).unwrap().library, None);
        let copy = path_of(&lent);
        assert!(copy.starts_with(workshop.path()) && fs::read(&copy).unwrap() == b"x", "the folder is closed");
        assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o777, 0o644);

        fs::set_permissions(closed.path(), Permissions::from_mode(0o755)).unwrap();
        assert_ne!(path_of(&lend()), library, "the file is closed");
        fs::set_permissions(&library, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(path_of(&lend()), library, "both are open");
    }
}
