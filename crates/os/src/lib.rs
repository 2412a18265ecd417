//! The one door to the kernel.
//!
//! Memory has four states, and every call is a transition between two of them:
//!
//! ```text
//!              commit                 the program writes
//!  reserved ───────────▶ ready ─────────────────────────▶ dirty
//!     ▲                    ▲                                │
//!     │ release            └────────────── purge ───────────┘
//!     └──────────────────────── (from any state)
//! ```
//!
//! | state | address space | memory behind it | contents |
//! |---|---|---|---|
//! | reserved | ours by agreement, not mapped | none | a fault |
//! | ready | mapped | none | zero |
//! | dirty | mapped | yes | whatever was written |
//! | clean | as ready: what purging leaves | none | zero ([`Os::purge_zeroes`]) |
//!
//! Layer: above `base`, below the heap. [`Linux`] is the kernel; `fake::Fake` (feature `fake`) is one that fails on demand.
//! Cost: a system call each, but for [`Os::now_ms`] and [`Os::relocate`]. What fails says so with the [`Errno`]; no state has changed then,
//! unless the call's own page says otherwise.
#![no_std]

#[cfg(feature = "fake")]
extern crate alloc;
#[cfg(all(feature = "fake", shuttle))]
extern crate std;

mod append;
pub mod cgroup;
#[cfg(feature = "fake")]
pub mod fake;
mod fatal;
mod file;
mod futex;
mod linux;
pub mod process;
pub mod scheduling;

pub use append::append;
pub use fatal::{fatal, report};
pub use futex::Futex;
pub use linux::Linux;

/// An error number of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Not enough memory, or too many mappings.
    pub const NOMEM: Self = Self(libc::ENOMEM);
    /// Something is mapped there already.
    pub const EXIST: Self = Self(libc::EEXIST);
    /// The kernel declines for now (locked pages).
    pub const AGAIN: Self = Self(libc::EAGAIN);
    /// Not one mapping, or none.
    pub const FAULT: Self = Self(libc::EFAULT);
    /// The kernel cannot do that.
    pub const INVAL: Self = Self(libc::EINVAL);

    /// Whether the same call may well succeed later, though nobody changes what it is asked for.
    #[must_use]
    pub fn is_passing(self) -> bool {
        matches!(self.0, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR | libc::EAGAIN)
    }
}

/// The kernel would not move memory ([`Os::relocate`]). What was to be moved is where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotMoved {
    /// What the kernel said.
    pub errno: Errno,
    /// What became of the range that the memory was to be moved to.
    pub target: Target,
}

/// What became of the target of a move that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// It is committed, as before. What it holds is undefined.
    Committed,
    /// It is reserved: unmapped for the move, and the kernel would not map it again.
    Reserved,
    /// Somebody else has mapped something there meanwhile: it must not be touched again.
    Taken,
}

/// How memory gets its pages before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefault {
    /// Every OS page is written to.
    Touch,
    /// The kernel is told that the memory will be needed; what it makes of that is its business.
    WillNeed,
    /// The kernel is asked for all of them at once.
    Populate,
}

/// What an allocator needs from an operating system.
///
/// # Safety
/// Implementations give memory that stays valid, at the address agreed on, until it is released, and that is zero when
/// [`Os::commit`] hands it out.
#[allow(unsafe_code)]
pub unsafe trait Os: Sync {
    /// Size of an OS page in bytes: a power of two, at most [`PAGE_BYTES`](freestone_base::units::PAGE_BYTES).
    fn os_page_bytes(&self) -> usize;

    /// The size of the window, in bytes, where address space is not short. No limit of the process matters: nothing in it is mapped.
    fn window_bytes_wanted(&self) -> usize;

    /// Proposes the start of `bytes` of address space, aligned to a page, that nobody seems to use. Nothing is mapped:
    /// [`Os::commit`] finds out. Another `attempt` proposes another place; `None` when there is none left to propose.
    fn propose_window(&self, bytes: usize, attempt: u32) -> Option<*mut u8>;

    /// Reserved → ready: maps `bytes` at `at`. `lazily` asks the kernel not to count the memory before it is written.
    ///
    /// # Errors
    /// [`Errno::EXIST`] when another mapping is in the way, [`Errno::NOMEM`] when memory, address space or mappings run out.
    ///
    /// # Safety
    /// - `at` and `bytes` are multiples of the OS page and lie inside a window proposed by this object.
    unsafe fn commit(&self, at: *mut u8, bytes: usize, lazily: bool) -> Result<(), Errno>;

    /// Any state → reserved.
    ///
    /// # Errors
    /// [`Errno::NOMEM`] when unmapping would split a mapping beyond the kernel's limit; the memory stays mapped.
    ///
    /// # Safety
    /// - The range was committed and nobody uses it any more.
    unsafe fn release(&self, at: *mut u8, bytes: usize) -> Result<(), Errno>;

    /// Dirty → clean: gives the memory back and keeps the addresses.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] or [`Errno::INVAL`] for locked pages, [`Errno::NOMEM`]; a part may have been given back then, and the contents are
    /// undefined.
    ///
    /// # Safety
    /// - The range was committed, is made of whole OS pages, and nobody needs its contents.
    unsafe fn purge(&self, at: *mut u8, bytes: usize) -> Result<(), Errno>;

    /// Dirty → dirty, until the kernel needs the memory: it may take it at any moment from now on to the next write.
    ///
    /// # Errors
    /// As for [`Os::purge`].
    ///
    /// # Safety
    /// - As for [`Os::purge`].
    unsafe fn purge_lazily(&self, at: *mut u8, bytes: usize) -> Result<(), Errno>;

    /// Whether purged memory was seen to read as zero: the first [`Os::purge`] that succeeds looks. (Under some emulators `madvise`
    /// succeeds and does nothing.)
    fn purge_zeroes(&self) -> bool;

    /// Moves the memory behind `bytes` at `from` to `to` without copying; `from` is ready (zero) afterwards.
    ///
    /// # Errors
    /// Whatever the kernel says; nothing has moved then, but the target may be gone: [`NotMoved::target`] says so.
    ///
    /// # Safety
    /// - Both ranges are committed, page-aligned and do not overlap; nobody needs what is at `to`.
    unsafe fn relocate(&self, from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), NotMoved>;

    /// Ready → ready, with memory behind it already.
    ///
    /// # Errors
    /// The kernel does not know how, or has no memory; whatever got memory keeps it.
    ///
    /// # Safety
    /// - The range is ready, and made of whole OS pages.
    unsafe fn prefault(&self, at: *mut u8, bytes: usize, how: Prefault) -> Result<(), Errno>;

    /// Size in bytes of the huge pages that the kernel gives to those who ask; 0 when asking changes nothing.
    fn huge_page_bytes(&self) -> usize;

    /// Asks for huge pages, or (`wanted` is false) for none, where memory is not there yet.
    ///
    /// # Errors
    /// The kernel's; what was asked for may hold for a part then.
    ///
    /// # Safety
    /// - The range is committed, and made of whole OS pages.
    unsafe fn advise_huge(&self, at: *mut u8, bytes: usize, wanted: bool) -> Result<(), Errno>;

    /// Whether the OS page that starts at `at`, which was committed once, has memory behind it; `false` if the kernel will not say.
    fn is_resident(&self, at: *mut u8) -> bool;

    /// The most memory in bytes that the process may use by its control group; `None` when nothing says so.
    fn memory_limit_bytes(&self) -> Option<u64>;

    /// Milliseconds since some fixed moment, never going back; coarse (a few ms).
    fn now_ms(&self) -> u64;
}
