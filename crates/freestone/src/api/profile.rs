//! The heap profile: starting and stopping it, and writing it.
//!
//! Writing allocates nothing and takes no lock: it reads counters that threads write meanwhile.

use crate::api::process::{self, PROCESS};
use crate::heap_profile::text::{self, Snapshot};
use core::ffi::CStr;
use freestone_os::Errno;

/// Starts to sample allocations, one byte in as many as the option `heap_profile_interval` says, or goes on with that interval. `false` without memory
/// for it, or in a sandbox.
pub fn start() -> bool {
    process::start();
    process::start_profile()
}

/// Samples no more. What was sampled stays in the profile until it is freed.
pub fn stop() {
    PROCESS.shared.profile.stop();
}

/// Writes the profile to the file that the options name.
///
/// # Errors
/// The kernel's error, which was said on standard error.
pub fn write_file(of: Snapshot) -> Result<(), Errno> {
    process::start();
    PROCESS.profile_files.write(PROCESS.shared.settings(), &PROCESS.shared.profile, of)
}

/// Writes the profile to a file, which is created or emptied.
///
/// # Errors
/// The kernel's error.
pub fn write_to(path: &CStr, of: Snapshot) -> Result<(), Errno> {
    text::write_to(&PROCESS.shared.profile, path, of)
}

/// Passes the profile on, piece by piece, until an error.
///
/// # Errors
/// The first that `sink` returns, or the kernel's from reading what is mapped.
pub fn write(of: Snapshot, sink: &mut dyn FnMut(&[u8]) -> Result<(), Errno>) -> Result<(), Errno> {
    text::write(&PROCESS.shared.profile, of, sink)
}
