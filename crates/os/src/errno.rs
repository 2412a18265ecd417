//! Error numbers.

/// An error number of the operating system.
///
/// ```
/// use freestone_os::Errno;
///
/// assert!(Errno::AGAIN.is_passing());
/// assert!(!Errno::EXIST.is_passing());
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

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_passing(self) -> bool {
        matches!(self.0, numbers::EMFILE | numbers::ENFILE | numbers::ENOMEM | numbers::EINTR | numbers::EAGAIN)
    }
}

/// The C library's numbers.
#[cfg(unix)]
use libc as numbers;

/// Where no C library has any: those of most.
#[cfg(not(unix))]
mod numbers {
    pub(super) const EINTR: i32 = 4;
    pub(super) const EAGAIN: i32 = 11;
    pub(super) const ENOMEM: i32 = 12;
    pub(super) const EFAULT: i32 = 14;
    pub(super) const EEXIST: i32 = 17;
    pub(super) const EINVAL: i32 = 22;
    pub(super) const ENFILE: i32 = 23;
    pub(super) const EMFILE: i32 = 24;
}
