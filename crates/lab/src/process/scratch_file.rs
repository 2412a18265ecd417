//! Temporary files and folders.
//!
//! Anybody may make files in the system's temporary folder, under any name, and a lab that was killed leaves its own there. So every file is in a
//! folder that was made for it, which only its user may enter: nobody else has put anything there before.

use anyhow::{Context, Result};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of a file in a [`ScratchFolder`] of its own; both are removed when the value is dropped.
pub(crate) struct ScratchFile {
    path: PathBuf,
    _folder: ScratchFolder,
}

impl ScratchFile {
    /// A file that is to be called `name`, in a new folder. The file itself is not created.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let folder = ScratchFolder::new(name)?;
        Ok(Self { path: folder.path().join(name), _folder: folder })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A folder of this process in the system's temporary folder; it is removed, with what is in it, when the value is dropped.
pub(crate) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// A new folder that only its user can read. `what` is part of its name.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new(what: &str) -> Result<Self> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        loop {
            let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("freestone-{what}-{}-{serial}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                // An earlier process with the same number was killed, or somebody else has the name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("the folder {} cannot be made", path.display()));
                }
            }
        }
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn names_differ_and_a_file_is_removed_with_its_value() {
        let [one, other] = [(); 2].map(|()| ScratchFile::new("test").unwrap());
        assert_ne!(one.path(), other.path());
        fs::write(one.path(), "x").unwrap();
        let path = one.path().to_path_buf();
        drop(one);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }

    #[test]
    fn only_its_user_may_enter_the_folder_of_a_file_and_what_has_its_name_is_left_alone() {
        let first = ScratchFolder::new("taken").unwrap();
        let name = first.path().to_str().unwrap();
        let (beginning, serial) = name.rsplit_once('-').unwrap();
        let serial: u64 = serial.parse().unwrap();
        // The tests beside this one take numbers as well.
        let taken: Vec<PathBuf> = (1..100).map(|next| format!("{beginning}-{}", serial + next).into()).collect();
        taken.iter().for_each(|path| std::os::unix::fs::symlink("/no/such/victim", path).unwrap());
        let file = ScratchFile::new("taken");
        let are_left = taken.iter().all(|path| path.is_symlink());
        taken.iter().for_each(|path| fs::remove_file(path).unwrap());
        let file = file.unwrap();
        let folder = file.path().parent().unwrap();
        assert!(are_left && !taken.iter().any(|path| path == folder));
        assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!file.path().exists());
    }
}
