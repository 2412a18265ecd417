//! What only Linux has a door to so far: files, shared memory, faults, and what a loaded object is made of.
//!
//! On other platforms each call here does nothing, and says so: a file gives [`Errno::INVAL`], closed memory `None`, an address no object. What is
//! built on them (reports, traces, heap profiles, live statistics, guarded blocks) is off there.
//!
//! Long because: every call of those modules has its counterpart.

use crate::Errno;
use core::ffi::CStr;
use core::fmt;
use core::sync::atomic::AtomicU64;

/// See [`Errno::INVAL`].
const ABSENT: Errno = Errno::INVAL;

/// Appends nothing.
///
/// # Errors
/// Always.
pub fn append(_path: &CStr, _bytes: &[u8]) -> Result<(), Errno> {
    Err(ABSENT)
}

/// A file that is written: there is none.
#[derive(Debug)]
pub struct OutputFile(());

impl OutputFile {
    /// Creates no file.
    ///
    /// # Errors
    /// Always.
    pub fn create(_path: &CStr) -> Result<Self, Errno> {
        Err(ABSENT)
    }

    /// Creates no file.
    ///
    /// # Errors
    /// Always.
    pub fn create_private(_path: &CStr) -> Result<Self, Errno> {
        Err(ABSENT)
    }

    /// Removes nothing.
    pub fn remove(_path: &CStr) {}

    /// Writes nothing.
    ///
    /// # Errors
    /// Always.
    pub fn write(&self, _bytes: &[u8]) -> Result<(), Errno> {
        Err(ABSENT)
    }
}

/// Writes nothing.
///
/// # Errors
/// Always.
pub fn write_descriptor(_descriptor: i32, _bytes: &[u8]) -> Result<(), Errno> {
    Err(ABSENT)
}

/// Reads nothing.
///
/// # Errors
/// Always.
pub fn read_pieces(_path: &CStr, _room: &mut [u8], _each: impl FnMut(&[u8]) -> Result<(), Errno>) -> Result<(), Errno> {
    Err(ABSENT)
}

/// Numbers in a file that other processes map: there is none.
#[derive(Debug)]
pub struct SharedWords<const N: usize>(());

impl<const N: usize> SharedWords<N> {
    /// No file.
    #[must_use]
    pub const fn none() -> Self {
        Self(())
    }

    /// No words.
    #[must_use]
    pub fn get(&self) -> Option<&'static [AtomicU64; N]> {
        None
    }

    /// Nothing.
    pub fn forget(&self) {}

    /// Creates no file.
    ///
    /// # Errors
    /// Always.
    pub fn create(&self, _path: &CStr) -> Result<&'static [AtomicU64; N], Errno> {
        Err(ABSENT)
    }

    /// Maps nothing.
    ///
    /// # Errors
    /// Always.
    pub fn open(_path: &CStr) -> Result<&'static [AtomicU64; N], Errno> {
        Err(ABSENT)
    }

    /// Maps nothing.
    ///
    /// # Errors
    /// Always.
    pub fn open_own(_path: &CStr) -> Result<&'static [AtomicU64; N], Errno> {
        Err(ABSENT)
    }

    /// Removes nothing.
    ///
    /// # Errors
    /// Always.
    pub fn remove(_path: &CStr) -> Result<(), Errno> {
        Err(ABSENT)
    }
}

/// A code address, as a number.
#[derive(Clone, Copy, Debug)]
pub struct CodeAddress(pub usize);

impl fmt::Display for CodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl CodeAddress {
    /// Whether it is known to be in the shared object that this library is in.
    #[must_use]
    pub fn is_of_this_library(self) -> bool {
        false
    }
}

/// Memory that is opened and closed: there is none. Windows has such memory.
#[cfg(not(door = "windows"))]
pub mod closable {
    #![allow(unsafe_code)]
    use super::{ABSENT, Errno};

    /// Maps nothing.
    #[must_use]
    pub fn map(_bytes: usize) -> Option<*mut u8> {
        None
    }

    /// Opens nothing.
    ///
    /// # Errors
    /// Always.
    ///
    /// # Safety
    /// - None: there is no such memory.
    pub unsafe fn open(_at: *mut u8, _bytes: usize) -> Result<(), Errno> {
        Err(ABSENT)
    }

    /// Closes nothing.
    ///
    /// # Errors
    /// Always.
    ///
    /// # Safety
    /// - None: there is no such memory.
    pub unsafe fn close(_at: *mut u8, _bytes: usize) -> Result<(), Errno> {
        Err(ABSENT)
    }
}

/// Faults, of which the program hears first.
pub mod fault {
    pub use crate::access_fault::{Fault, Hook, Outcome};

    /// Installs nothing.
    pub fn install(_hook: Hook) -> bool {
        false
    }

    /// Installs nothing.
    pub fn renew() {}
}

/// Files that grow: there are none.
pub mod growing_file {
    #![allow(unsafe_code)]
    use super::{ABSENT, Errno};
    use core::ffi::CStr;

    /// Which file it is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FileId([u64; 2]);

    impl FileId {
        /// As two numbers.
        #[must_use]
        pub fn to_numbers(self) -> [u64; 2] {
            self.0
        }

        /// From what [`FileId::to_numbers`] returned.
        #[must_use]
        pub fn of_numbers(numbers: [u64; 2]) -> Self {
            Self(numbers)
        }
    }

    /// Makes no file.
    ///
    /// # Errors
    /// Always.
    pub fn create(_path: &CStr) -> Result<FileId, Errno> {
        Err(ABSENT)
    }

    /// An open file: none.
    #[derive(Debug)]
    pub struct OpenFile(());

    /// Opens nothing.
    ///
    /// # Errors
    /// Always.
    pub fn open_again(_path: &CStr, _id: FileId) -> Result<OpenFile, Errno> {
        Err(ABSENT)
    }

    impl OpenFile {
        /// Maps nothing.
        ///
        /// # Errors
        /// Always.
        pub fn map(&self, _offset: u64, _bytes: usize) -> Result<*mut u8, Errno> {
            Err(ABSENT)
        }

        /// Writes nothing.
        ///
        /// # Errors
        /// Always.
        pub fn write(&self, _offset: u64, _bytes: &[u8]) -> Result<(), Errno> {
            Err(ABSENT)
        }
    }

    /// Unmaps nothing.
    ///
    /// # Safety
    /// - None: nothing is mapped.
    pub unsafe fn unmap(_at: *mut u8, _bytes: usize) {}

    /// An unknown directory.
    pub fn working_directory(_buffer: &mut [u8]) -> &[u8] {
        &[]
    }
}

/// Which loaded object an address is in: it is not known.
pub(crate) mod module {
    /// A loaded object.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Module {
        /// Address of its call frame information.
        pub(crate) frame_info: usize,
    }

    /// No object.
    pub(crate) fn find(_at: usize) -> Option<Module> {
        None
    }

    /// Nothing was found that could stay.
    pub(crate) fn stays(_found: Option<Module>) -> bool {
        false
    }
}

/// What a thread knows of its own stack: nothing.
pub(crate) mod own_stack {
    use super::readable::{KnownWords, Reader};

    /// Nothing.
    #[derive(Debug, Default)]
    pub struct OwnStack;

    impl OwnStack {
        /// Nothing is known.
        #[must_use]
        pub const fn new() -> Self {
            Self
        }

        /// There is nothing to forget.
        pub fn forget(&self) {}

        pub(crate) fn reader(&self, _stack: usize) -> Reader {
            Reader::new()
        }

        pub(crate) fn words(&self, _stack: usize) -> KnownWords {
            KnownWords
        }
    }
}

/// Reading memory of which nothing is known: none is read.
pub(crate) mod readable {
    /// No words.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct KnownWords;

    impl KnownWords {
        /// No word.
        pub(crate) fn get(self, _number: usize) -> Option<usize> {
            None
        }
    }

    /// Reads nothing.
    #[derive(Debug)]
    pub(crate) struct Reader;

    impl Reader {
        /// Nothing is known.
        pub(crate) fn new() -> Self {
            Self
        }

        /// Nothing.
        pub(crate) fn knows_some(&self) -> bool {
            false
        }

        /// No bytes.
        pub(crate) fn bytes<const N: usize>(&mut self, _at: usize) -> Option<[u8; N]> {
            None
        }

        /// No word.
        pub(crate) fn word(&mut self, _at: usize) -> Option<usize> {
            None
        }
    }
}

/// Keeping the object that contains the allocator loaded: programs have to, but for Windows, where the callback of `windows/exit_hook.rs` does.
pub mod pin {
    /// Nothing.
    pub fn pin() {}
}

/// Weak symbols: no program defines any.
pub mod weak_symbols {
    /// No options.
    #[must_use]
    pub fn linked_options() -> &'static [u8] {
        &[]
    }

    /// Nothing.
    pub fn lock_streams() {}

    /// Nothing.
    pub fn unlock_streams() {}

    /// Nothing.
    pub fn reset_streams() {}
}
