//! The file that the option `report` names.

use crate::config::Mistake;
use crate::config::path_value::PathValue;
use freestone_base::sync::{AtomicBool, Ordering};

/// The file; nothing is written unless its path is set.
pub(crate) struct ReportFile {
    path: PathValue,
    /// Whether it was said that the file cannot be written.
    has_failed: AtomicBool,
}

impl ReportFile {
    /// No path.
    pub(super) const fn new() -> Self {
        Self { path: PathValue::new(), has_failed: AtomicBool::new(false) }
    }

    /// Whether there is a report.
    pub(crate) fn is_set(&self) -> bool {
        self.path.is_set()
    }

    /// Sets the path, in place of one set before; an empty one turns the report off.
    ///
    /// # Errors
    /// As for [`PathValue::set`].
    pub(crate) fn set(&self, path: &[u8]) -> Result<(), Mistake> {
        self.path.set(path)?;
        self.has_failed.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// As [`PathValue::make_absolute`].
    pub(crate) fn make_absolute(&self) {
        self.path.make_absolute(false);
    }

    /// Appends whole lines, if there is a report. A file that cannot be written is reported on standard error, the first time.
    pub(crate) fn append(&self, lines: &[u8]) {
        if let Some(path) = self.path.load() {
            let appended = freestone_os::append(path.as_c(), lines);
            if let Some(errno) = appended.err().filter(|_| !self.has_failed.swap(true, Ordering::Relaxed)) {
                let path = path.to_str().unwrap_or("?");
                freestone_os::report(format_args!("cannot write the report to {path}: {errno}; give another path"));
            }
        }
    }
}
