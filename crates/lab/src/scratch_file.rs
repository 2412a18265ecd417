//! Temporary files and folders.
//!
//! Anybody may make files in the system's temporary folder, under any name, and a lab that was killed leaves its own there. So every file is in a
//! folder that was made for it, which only its user may enter: nobody else has put anything there before.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::iter;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The name of a file in a [`ScratchFolder`] of its own; both are removed when the value is dropped.
pub(crate) struct ScratchFile {
    path: PathBuf,
    folder: ScratchFolder,
}

impl ScratchFile {
    /// A file that is to be called `name`, in a new folder. The file itself is not created.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let folder = ScratchFolder::new(name)?;
        Ok(Self { path: Self::path_of(name, folder.number), folder })
    }

    /// A file without a name: nothing is left of it, however its process ends.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn unnamed(what: &str) -> Result<File> {
        let file = Self::new(what)?;
        let shown = || format!("{} cannot be made", file.path.display());
        File::options().read(true).write(true).create_new(true).open(&file.path).with_context(shown)
    }

    /// The path of the file `name` with this number, which may be another process's.
    pub(crate) fn path_of(name: &str, number: u32) -> PathBuf {
        ScratchFolder::path_of(name, number).join(name)
    }

    /// Its number, by which another process finds it.
    pub(crate) fn number(&self) -> u32 {
        self.folder.number
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A folder of this process in the system's temporary folder; it is removed, with what is in it, when the value is dropped.
pub(crate) struct ScratchFolder {
    path: PathBuf,
    number: u32,
}

impl ScratchFolder {
    /// A new folder that only its user can read. `what` is part of its name, and so is a number that nobody can guess.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new(what: &str) -> Result<Self> {
        Self::with_first_free(what, iter::repeat_with(|| RandomState::new().hash_one(0) as u32))
    }

    /// A new folder with the first of the numbers with which there is none.
    fn with_first_free(what: &str, numbers: impl Iterator<Item = u32>) -> Result<Self> {
        for number in numbers {
            let path = Self::path_of(what, number);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path, number }),
                // Another process has the name, or had it and was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("the folder {} cannot be made", path.display()));
                }
            }
        }
        bail!("the system's temporary folder has no name left for {what}")
    }

    /// The path of the folder with this number.
    fn path_of(what: &str, number: u32) -> PathBuf {
        std::env::temp_dir().join(format!("freestone-{what}-{number:08x}"))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_removed_with_its_value_and_found_by_its_number() {
        let [one, other] = [(); 2].map(|()| ScratchFile::new("test").unwrap());
        assert_ne!(one.path(), other.path());
        assert_eq!(ScratchFile::path_of("test", one.number()), one.path());
        fs::write(one.path(), "x").unwrap();
        let path = one.path().to_path_buf();
        drop(one);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }

    /// Two numbers in a row are no neighbours, and no number is that of the process.
    #[test]
    fn numbers_cannot_be_guessed() {
        let numbers = [(); 4].map(|()| ScratchFile::new("guess").unwrap().number());
        assert!(numbers.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 1), "{numbers:?}");
        assert!(!numbers.contains(&std::process::id()), "{numbers:?}");
    }

    #[test]
    fn only_its_user_may_enter_a_folder_and_what_has_its_name_is_left_alone() {
        let first = ScratchFolder::new("taken").unwrap();
        let taken = ScratchFolder::path_of("taken", !first.number);
        std::os::unix::fs::symlink("/no/such/victim", &taken).unwrap();
        let numbers = [first.number, !first.number, first.number ^ 1];
        let folder = ScratchFolder::with_first_free("taken", numbers.into_iter());
        let is_left = taken.is_symlink();
        fs::remove_file(taken).unwrap();
        let folder = folder.unwrap();
        assert!(is_left && folder.number == first.number ^ 1);
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(ScratchFolder::with_first_free("taken", [first.number].into_iter()).is_err());
    }
}
