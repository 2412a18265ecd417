//! Temporary files and folders.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of a file of this process in the system's temporary folder; the file is removed when the value is dropped.
pub(crate) struct ScratchFile(PathBuf);

impl ScratchFile {
    /// A name that no other value has. `what` is part of it. The file itself is not created.
    pub(crate) fn new(what: &str) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("freestone-{what}-{}-{serial}", std::process::id())))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        // The file may never have been written.
        let _ = fs::remove_file(&self.0);
    }
}

/// A folder of this process in the system's temporary folder; it is removed, with what is in it, when the value is dropped.
pub(crate) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// A new folder that only its user can read.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new(what: &str) -> io::Result<Self> {
        let path = ScratchFile::new(what).path().to_path_buf();
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
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

    #[test]
    fn names_differ_and_a_file_is_removed_with_its_value() {
        let (one, other) = (ScratchFile::new("test"), ScratchFile::new("test"));
        assert_ne!(one.path(), other.path());
        fs::write(one.path(), "x").unwrap();
        let path = one.path().to_path_buf();
        drop(one);
        assert!(!path.exists());
    }
}
