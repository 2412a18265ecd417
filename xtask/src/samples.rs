//! Small source trees for the tests of the checks, each in a temporary folder of its own that goes away with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder with some files.
pub(crate) struct Sample(PathBuf);

impl Sample {
    /// Writes `files`, each a path and a text.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        static N_MADE: AtomicU32 = AtomicU32::new(0);
        let n = N_MADE.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("freestone-xtask-{}-{n}", std::process::id()));
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder for the sample");
            fs::write(path, text).expect("a file of the sample");
        }
        Self(folder)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
