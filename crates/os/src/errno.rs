//! Error numbers.

use core::fmt;

/// An error number of the operating system.
///
/// ```
/// use freestone_os::Errno;
///
/// assert!(Errno::AGAIN.is_passing());
/// assert!(!Errno::EXIST.is_passing());
/// assert_eq!(Errno::EXIST.to_string(), "error 17 (there is such a file)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Not enough memory, or too many mappings.
    pub const NOMEM: Self = Self(numbers::ENOMEM);
    /// Something else is mapped there.
    pub const EXIST: Self = Self(numbers::EEXIST);
    /// The kernel refuses for now (locked pages).
    pub const AGAIN: Self = Self(numbers::EAGAIN);
    /// The range is not one mapping.
    pub const FAULT: Self = Self(numbers::EFAULT);
    /// The kernel does not support that.
    pub const INVAL: Self = Self(numbers::EINVAL);

    /// A path is longer than there is room for.
    pub const NAME_TOO_LONG: Self = Self(numbers::ENAMETOOLONG);

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_passing(self) -> bool {
        matches!(self.0, numbers::EMFILE | numbers::ENFILE | numbers::ENOMEM | numbers::EINTR | numbers::EAGAIN)
    }
}

/// What it means where it concerns a file: the C library's texts are not to be had without a lock.
impl fmt::Display for Errno {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meaning = match self.0 {
            numbers::EPERM | numbers::EACCES => "permission denied",
            numbers::ENOENT => "no such file or folder",
            numbers::ENXIO => "a pipe that nobody reads, or a socket",
            numbers::ENOMEM => "out of memory",
            numbers::EEXIST => "there is such a file",
            numbers::ENOTDIR => "not a folder",
            numbers::EISDIR => "a folder",
            numbers::EMFILE | numbers::ENFILE => "too many open files",
            numbers::EFBIG => "a limit on the length of files",
            numbers::ENOSPC => "the disk is full",
            numbers::ENAMETOOLONG => "the name is too long",
            numbers::EROFS => "a read-only file system",
            _ => return write!(to, "error {}", self.0),
        };
        write!(to, "error {} ({meaning})", self.0)
    }
}

/// The C library's numbers.
#[cfg(unix)]
use libc as numbers;

/// Where no C library has any: those of most.
#[cfg(not(unix))]
mod numbers {
    pub(super) const EPERM: i32 = 1;
    pub(super) const ENOENT: i32 = 2;
    pub(super) const EINTR: i32 = 4;
    pub(super) const ENXIO: i32 = 6;
    pub(super) const EAGAIN: i32 = 11;
    pub(super) const ENOMEM: i32 = 12;
    pub(super) const EACCES: i32 = 13;
    pub(super) const EFAULT: i32 = 14;
    pub(super) const EEXIST: i32 = 17;
    pub(super) const ENOTDIR: i32 = 20;
    pub(super) const EISDIR: i32 = 21;
    pub(super) const EINVAL: i32 = 22;
    pub(super) const ENFILE: i32 = 23;
    pub(super) const EMFILE: i32 = 24;
    pub(super) const EFBIG: i32 = 27;
    pub(super) const ENOSPC: i32 = 28;
    pub(super) const EROFS: i32 = 30;
    pub(super) const ENAMETOOLONG: i32 = 36;
}
