//! Gives files names that other processes may take at the same moment.
//!
//! The kernel looks whether there is a file and renames in one step. Some file systems do not offer that (NFS, for example): there a second name is
//! made, which fails as well if there is a file, and the first one is removed.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::io;
use std::path::Path;

/// Renames `from` to `to`.
///
/// # Errors
/// There is a file called `to` ([`io::ErrorKind::AlreadyExists`]), or `from` cannot be renamed.
pub(super) fn to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    match rename(from, to, RenameFlags::NOREPLACE) {
        Err(error) if is_not_offered(&error) => by_a_second_name(from, to),
        renamed => renamed,
    }
}

/// Renames `from` to `to`. The file that was called `to` is called `from` then; where the file system does not offer that, it is removed.
///
/// # Errors
/// There is no file called `to` ([`io::ErrorKind::NotFound`]), or `from` cannot be renamed.
pub(super) fn in_place_of(from: &Path, to: &Path) -> io::Result<()> {
    match rename(from, to, RenameFlags::EXCHANGE) {
        Err(error) if is_not_offered(&error) => fs::rename(from, to),
        renamed => renamed,
    }
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    let [from, to] = [from, to].map(|path| path.as_os_str().as_encoded_bytes());
    renameat_with(CWD, from, CWD, to, flags).map_err(|error| io::Error::from_raw_os_error(error.raw_os_error()))
}

/// Whether the file system, or the kernel, does not know such a renaming.
fn is_not_offered(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP))
}

fn by_a_second_name(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file can have one name only here: nothing is left but to look first.
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_file::ScratchFolder;

    #[test]
    fn a_name_that_is_taken_is_refused_and_both_files_stay() {
        let scratch = ScratchFolder::new("moving").unwrap();
        let [from, to] = ["from", "to"].map(|name| scratch.path().join(name));
        for renaming in [to_free_name, by_a_second_name] {
            [&from, &to].iter().for_each(|path| fs::write(path, path.to_str().unwrap()).unwrap());
            assert_eq!(renaming(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert!([&from, &to].iter().all(|path| fs::read_to_string(path).unwrap() == path.to_str().unwrap()));
            fs::remove_file(&to).unwrap();
            renaming(&from, &to).unwrap();
            assert!(!from.exists() && fs::read_to_string(&to).unwrap() == from.to_str().unwrap());
        }
    }

    #[test]
    fn a_file_in_place_of_another_leaves_its_name_to_it() {
        let scratch = ScratchFolder::new("moving").unwrap();
        let [from, to] = ["from", "to"].map(|name| scratch.path().join(name));
        fs::write(&from, "new").unwrap();
        assert_eq!(in_place_of(&from, &to).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&to, "old").unwrap();
        in_place_of(&from, &to).unwrap();
        // A file system that cannot exchange two names has removed the old file.
        assert!(fs::read_to_string(&to).unwrap() == "new" && fs::read_to_string(&from).is_ok_and(|text| text == "old"));
    }
}
