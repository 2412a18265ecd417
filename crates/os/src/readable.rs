//! Reading memory of which nothing is known: it may not be mapped.
#![allow(unsafe_code)]
//!
//! The kernel says whether an OS page can be read: `rt_sigprocmask` copies a set of signals from the address first, and then refuses the
//! operation, which does not exist, with EINVAL. A filter of system calls may refuse the call with another error: then nothing is known, and nothing is
//! read. Each page is asked about once in a row. That is a system call, so a thread remembers what it found out about its own stack
//! (`stack::own_stack`), and a reader is told.
//!
//! # Safety
//! An address is read only after the kernel has read the OS page that it is in, or if it is in the calling thread's stack above its stack pointer. Another thread may unmap that page in between: callers read stacks of
//! their own thread, and objects that the loader knows.

use crate::{Errno, process};
use core::ptr;
use freestone_base::ptr as address;

/// A range that can be read without a question.
#[derive(Clone, Copy, Debug)]
struct KnownRange {
    start: usize,
    bytes: usize,
}

impl KnownRange {
    #[inline(always)]
    fn has(self, at: usize) -> bool {
        at.wrapping_sub(self.start) < self.bytes
    }
}

/// Words that can be read without a question, by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownWords {
    start: usize,
    n: usize,
}

impl KnownWords {
    /// The `n` words from `start` on, which is aligned if there are any.
    ///
    /// # Safety
    /// - They can be read, as long as the value is used.
    #[inline(always)]
    pub(crate) unsafe fn new(start: usize, n: usize) -> Self {
        Self { start, n }
    }

    /// A word, if it is one of these.
    #[inline(always)]
    pub(crate) fn get(self, number: usize) -> Option<usize> {
        if number >= self.n {
            return None;
        }
        // SAFETY: it is aligned, and can be read (the contract of `new`).
        Some(unsafe { address::from_exposed::<usize>(self.start + number * size_of::<usize>()).read() })
    }
}

/// The last OS page that could be read, and what can be read without a question.
#[derive(Debug)]
pub(crate) struct Reader {
    known: KnownRange,
    page: usize,
    /// The bits of an address that say which OS page it is in.
    mask: usize,
}

impl Reader {
    /// Nothing is known.
    pub(crate) fn new() -> Self {
        Self { known: KnownRange { start: 0, bytes: 0 }, page: usize::MAX, mask: !(process::os_page_bytes() - 1) }
    }

    /// Knows that `bytes` from `start` on can be read, which both are multiples of a word.
    ///
    /// # Safety
    /// - They can be, as long as the reader is used.
    pub(crate) unsafe fn with_known(start: usize, bytes: usize) -> Self {
        Self { known: KnownRange { start, bytes }, ..Self::new() }
    }

    /// Whether it knows a range that can be read.
    pub(crate) fn knows_some(&self) -> bool {
        self.known.bytes != 0
    }

    /// The bytes at `at`, if they can be read.
    #[inline]
    pub(crate) fn bytes<const N: usize>(&mut self, at: usize) -> Option<[u8; N]> {
        if !self.are_readable(at, N) {
            return None;
        }
        // SAFETY: the OS pages that the bytes are in could be read just now, or are known; `N` is less than an OS page.
        Some(unsafe { address::from_exposed::<[u8; N]>(at).read_unaligned() })
    }

    /// The word at `at`, if it is aligned and can be read.
    #[inline]
    pub(crate) fn word(&mut self, at: usize) -> Option<usize> {
        if at % size_of::<usize>() != 0 || !self.is_readable(at) {
            return None;
        }
        // SAFETY: the OS page could be read just now, or the word is known; an aligned word is in one page, and not half in what is known.
        Some(unsafe { address::from_exposed::<usize>(at).read() })
    }

    #[inline(never)]
    fn are_readable(&mut self, at: usize, bytes: usize) -> bool {
        at.checked_add(bytes - 1).is_some_and(|last| [at, last].into_iter().all(|at| self.is_readable(at)))
    }

    #[inline]
    fn is_readable(&mut self, at: usize) -> bool {
        self.known.has(at) || at & self.mask == self.page || self.ask(at & self.mask)
    }

    #[cold]
    fn ask(&mut self, page: usize) -> bool {
        // A null pointer is no address to the kernel, and no memory to anybody.
        let is_readable = page != 0 && can_be_read(page);
        if is_readable {
            self.page = page;
        }
        is_readable
    }
}

/// Whether the kernel can read eight bytes at `at`. Keeps `errno`.
pub(crate) fn can_be_read(at: usize) -> bool {
    /// No operation of `rt_sigprocmask`.
    const NO_SUCH: libc::c_long = -1;
    /// What the kernel's sets of signals have.
    const SET_BYTES: usize = 8;
    let before = process::errno();
    let (set, none) = (address::from_exposed::<u8>(at), ptr::null_mut::<u8>());
    // SAFETY: the call reads the set, if it can, and changes nothing, because there is no such operation.
    let result = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NO_SUCH, set, none, SET_BYTES) };
    let is_read = result == -1 && process::errno() == Errno::INVAL;
    process::set_errno(before);
    is_read
}

#[cfg(test)]
mod tests;
