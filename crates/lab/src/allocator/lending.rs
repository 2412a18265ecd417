//! Libraries that every user can read.

use crate::allocator::description::Allocator;
use anyhow::{Context, Result};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// The allocators, each library that some user may not read copied into `folder`: postgres runs as a user of its own, and the loader goes on without a
/// library that it cannot open.
///
/// # Errors
/// A library cannot be copied.
pub(crate) fn lend(allocators: &[Allocator], folder: &Path) -> Result<Vec<Allocator>> {
    let lend = |(number, one): (usize, &Allocator)| match &one.library {
        Some(library) if !can_be_read_by_all(library).with_context(|| format!("{}", library.display()))? => {
            let name = library.file_name().unwrap_or_default().to_string_lossy();
            let copy = folder.join(format!("allocator-{number}-{name}"));
            fs::copy(library, &copy)
                .and_then(|_| fs::set_permissions(&copy, Permissions::from_mode(0o644)))
                .with_context(|| format!("{} could not be copied", library.display()))?;
            Ok(Allocator { library: Allocator::in_library(&one.name, copy).library, ..one.clone() })
        }
        _ => Ok(one.clone()),
    };
    allocators.iter().enumerate().map(lend).collect()
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
    use crate::scratch_file::ScratchFolder;

    #[test]
    fn a_library_is_copied_only_if_other_users_cannot_read_it() {
        let [folder, closed] = ["folder", "closed"].map(|name| ScratchFolder::new(name).unwrap());
        let library = closed.path().join("libx.so");
        fs::write(&library, "x").unwrap();
        fs::set_permissions(&library, Permissions::from_mode(0o640)).unwrap();
        let path_of = |lent: &[Allocator]| lent.first().unwrap().library.clone().unwrap();
        let allocators = [Allocator::in_library("x", library.clone()), Allocator::system()];
        let lend = || lend(&allocators, folder.path()).unwrap();

        let lent = lend();
        assert_eq!(lent.get(1).unwrap().library, None);
        let copy = path_of(&lent);
        assert!(copy.starts_with(folder.path()) && fs::read(&copy).unwrap() == b"x", "the folder is closed");
        assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o777, 0o644);

        fs::set_permissions(closed.path(), Permissions::from_mode(0o755)).unwrap();
        assert_ne!(path_of(&lend()), library, "the file is closed");
        fs::set_permissions(&library, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(path_of(&lend()), library, "both are open");
    }
}
