//! The files of heap profiles: their names, and the one that is written at exit.

use crate::api::file_name::{self, FileName};
use crate::config::Settings;
use crate::heap_profile::recorder::HeapProfile;
use crate::heap_profile::text::{self, Snapshot};
use core::ffi::CStr;
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering};
use freestone_os::{Errno, OutputFile};

/// The file that is written by default.
const DEFAULT_FILE: &[u8] = b"freestone.%p.%n.heap";

/// See the module header.
pub(super) struct ProfileFiles {
    /// Files that were written, or were to be.
    n_files: AtomicU32,
    /// Whether one is written at exit.
    at_exit: AtomicBool,
    /// Whether one that nobody asked for could not be written.
    has_failed: AtomicBool,
}

impl ProfileFiles {
    /// None.
    pub(super) const fn new() -> Self {
        Self { n_files: AtomicU32::new(0), at_exit: AtomicBool::new(false), has_failed: AtomicBool::new(false) }
    }

    /// Has one written at exit.
    pub(super) fn expect_exit(&self) {
        self.at_exit.store(true, Ordering::Relaxed);
    }

    /// Writes the one that is to be written at exit, if profiling was started at all.
    pub(super) fn write_at_exit(&self, settings: &Settings, profile: &HeapProfile) {
        if self.at_exit.swap(false, Ordering::Relaxed) && profile.has_tables() {
            self.write_unasked(settings, profile);
            let name = settings.heap_profile_file().load();
            // With `%w` in the name there is room for both.
            if name.is_some_and(|name| file_name::has(name.as_c().to_bytes(), b'w')) {
                let _ = self.write(settings, profile, Snapshot::Peak);
            }
        }
    }

    /// Writes one that is due. That this fails is said the first time.
    pub(super) fn write_unasked(&self, settings: &Settings, profile: &HeapProfile) {
        let is_said = !self.has_failed.load(Ordering::Relaxed);
        if self.write_numbered(settings, profile, Snapshot::Live, is_said).is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
    }

    /// Writes the profile to the file that the options name.
    ///
    /// # Errors
    /// The kernel's error, which was said on standard error.
    pub(super) fn write(&self, settings: &Settings, profile: &HeapProfile, of: Snapshot) -> Result<(), Errno> {
        self.write_numbered(settings, profile, of, true)
    }

    fn write_numbered(
        &self,
        settings: &Settings,
        profile: &HeapProfile,
        of: Snapshot,
        is_said: bool,
    ) -> Result<(), Errno> {
        let number = self.n_files.fetch_add(1, Ordering::Relaxed) + 1;
        let written = create(settings, number, of).and_then(|file| text::write_into(profile, &file, of));
        written.inspect_err(|&errno| {
            if is_said {
                say(settings, number, of, errno);
            }
        })
    }
}

/// Creates the file of a profile. A function of its own: names need much of the stack, and so does writing.
#[inline(never)]
fn create(settings: &Settings, number: u32, of: Snapshot) -> Result<OutputFile, Errno> {
    let mut name = FileName::new();
    name_of(&mut name, settings, number, of);
    OutputFile::create(CStr::from_bytes_until_nul(name.as_bytes()).map_err(|_| Errno::NAME_TOO_LONG)?)
}

/// Says that a profile could not be written.
#[cold]
#[inline(never)]
fn say(settings: &Settings, number: u32, of: Snapshot, errno: Errno) {
    let mut name = FileName::new();
    name_of(&mut name, settings, number, of);
    let path = CStr::from_bytes_until_nul(name.as_bytes()).ok().and_then(|path| path.to_str().ok());
    freestone_os::report(format_args!(
        "cannot write the heap profile to {}: {errno}; give another path with heap_profile_file",
        path.unwrap_or("?"),
    ));
}

/// Writes the name of a profile's file into `text`.
#[inline(never)]
fn name_of(text: &mut FileName, settings: &Settings, number: u32, of: Snapshot) {
    let path = settings.heap_profile_file().load();
    expand(text, path.as_ref().map_or(DEFAULT_FILE, |path| path.to_bytes()), number, of);
}

/// Writes a name with the numbers of process and profile in it, and which blocks it is of, and a final zero.
fn expand(text: &mut FileName, name: &[u8], number: u32, of: Snapshot) {
    file_name::expand(text, name, &|letter, text| {
        let _ = match letter {
            b'p' => write!(text, "{}", freestone_os::process::id()),
            b'n' => write!(text, "{number}"),
            b'w' => write!(text, "{}", if of == Snapshot::Peak { "peak" } else { "live" }),
            _ => return false,
        };
        true
    });
}

#[cfg(test)]
mod tests;
