//! The heap profile: starting and stopping it, and writing it.
//!
//! Writing allocates nothing and takes no lock: it reads counters that threads write meanwhile.

use crate::api::process::{self, PROCESS};
use crate::heap_profile::text::{self, Snapshot};
use core::ffi::CStr;
use freestone_os::Errno;

/// Starts to sample allocations, one byte in as many as the option `heap_profile_interval` says, or goes on with that interval. `false` without memory
/// for it, or in a sandbox.
///
/// ```
/// use freestone::{Freestone, profile};
///
/// Freestone.set_option("heap_profile_interval", "64k")?;
/// assert!(profile::start());
/// # profile::stop();
/// # Ok::<(), freestone::options::Mistake>(())
/// ```
pub fn start() -> bool {
    process::start();
    process::start_profile()
}

/// Samples no more. What was sampled stays in the profile until it is freed.
///
/// ```
/// use freestone::profile::{self, Snapshot};
///
/// #[global_allocator]
/// static ALLOCATOR: freestone::Freestone = freestone::Freestone;
///
/// assert!(profile::start());
/// let buffer = vec![1_u8; 64 << 20];
/// profile::stop();
/// let mut text = Vec::new();
/// profile::write(Snapshot::Live, &mut |piece| Ok(text.extend_from_slice(piece))).expect("a vector takes everything");
/// assert!(!text.starts_with(b"heap profile: 0: 0"), "it is there until it is freed");
/// drop(buffer);
/// ```
pub fn stop() {
    PROCESS.shared.profile.stop();
}

/// Writes the profile to the file that the options name.
///
/// ```
/// use freestone::profile::{self, Snapshot};
///
/// # let folder = std::env::temp_dir().join(format!("freestone-write-file-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).expect("a folder");
/// # std::env::set_current_dir(&folder).expect("the folder");
/// assert!(profile::start());
/// profile::write_file(Snapshot::Live).expect("the folder can be written"); // without the option heap_profile_file: freestone.PID.N.heap
/// # let written = std::fs::read_dir(".").expect("the folder").next().expect("a file").expect("a file").file_name();
/// # assert!(written.to_string_lossy().ends_with(".heap"));
/// # profile::stop();
/// # std::fs::remove_dir_all(&folder).expect("the folder");
/// ```
///
/// # Errors
/// The kernel's error, which was said on standard error.
pub fn write_file(of: Snapshot) -> Result<(), Errno> {
    process::start();
    PROCESS.profile_files.write(PROCESS.shared.settings(), &PROCESS.shared.profile, of)
}

/// Writes the profile to a file, which is created or emptied.
///
/// ```
/// use freestone::profile::{self, Snapshot};
/// use std::ffi::CString;
///
/// let file = std::env::temp_dir().join(format!("freestone-{}.heap", std::process::id()));
/// let path = CString::new(file.to_string_lossy().as_bytes()).expect("a path without zeros");
/// assert!(profile::start());
/// profile::write_to(&path, Snapshot::Peak).expect("the folder can be written");
/// assert!(std::fs::read_to_string(&file).is_ok_and(|text| text.starts_with("heap profile: ")));
/// # profile::stop();
/// # std::fs::remove_file(&file).expect("the file");
/// ```
///
/// # Errors
/// The kernel's error.
pub fn write_to(path: &CStr, of: Snapshot) -> Result<(), Errno> {
    text::write_to(&PROCESS.shared.profile, path, of)
}

/// Passes the profile on, piece by piece, until an error.
///
/// ```
/// use freestone::profile::{self, Snapshot};
///
/// # assert!(profile::start());
/// let mut text = Vec::new();
/// profile::write(Snapshot::Live, &mut |piece| Ok(text.extend_from_slice(piece))).expect("a vector takes everything");
/// assert!(text.starts_with(b"heap profile: "));
/// # profile::stop();
/// ```
///
/// # Errors
/// The first that `sink` returns, or the kernel's from reading what is mapped.
pub fn write(of: Snapshot, sink: &mut dyn FnMut(&[u8]) -> Result<(), Errno>) -> Result<(), Errno> {
    text::write(&PROCESS.shared.profile, of, sink)
}
