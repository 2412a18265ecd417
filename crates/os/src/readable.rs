//! Reading memory of which nothing is known: it may not be mapped.
#![allow(unsafe_code)]
//!
//! The kernel says whether an OS page can be read: `rt_sigprocmask` copies a set of signals from the address first, and then refuses the
//! operation, which does not exist. Each page is asked about once in a row.
//!
//! # Safety
//! An address is read only after the kernel has read the OS page that it is in. Another thread may unmap that page in between: callers read stacks of
//! their own thread, and objects that the loader knows.

use crate::{Errno, process};
use core::ptr;
use freestone_base::ptr as address;

/// The last OS page that could be read.
#[derive(Debug)]
pub(crate) struct Reader {
    page: usize,
    /// The bits of an address that say which OS page it is in.
    mask: usize,
}

impl Reader {
    /// Nothing is known.
    pub(crate) fn new() -> Self {
        Self { page: usize::MAX, mask: !(process::os_page_bytes() - 1) }
    }

    /// The bytes at `at`, if they can be read.
    pub(crate) fn bytes<const N: usize>(&mut self, at: usize) -> Option<[u8; N]> {
        let last = at.checked_add(N - 1)?;
        if !(self.is_readable(at) && self.is_readable(last)) {
            return None;
        }
        // SAFETY: both OS pages that the bytes are in could be read just now; `N` is less than an OS page.
        Some(unsafe { address::from_exposed::<[u8; N]>(at).read_unaligned() })
    }

    /// The word at `at`, if it is aligned and can be read.
    #[inline]
    pub(crate) fn word(&mut self, at: usize) -> Option<usize> {
        if at % size_of::<usize>() != 0 || !self.is_readable(at) {
            return None;
        }
        // SAFETY: the OS page could be read just now, and an aligned word is in one page.
        Some(unsafe { address::from_exposed::<usize>(at).read() })
    }

    #[inline]
    fn is_readable(&mut self, at: usize) -> bool {
        at & self.mask == self.page || self.ask(at & self.mask)
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
fn can_be_read(at: usize) -> bool {
    /// No operation of `rt_sigprocmask`.
    const NO_SUCH: libc::c_long = -1;
    /// What the kernel's sets of signals have.
    const SET_BYTES: usize = 8;
    let before = process::errno();
    let (set, none) = (address::from_exposed::<u8>(at), ptr::null_mut::<u8>());
    // SAFETY: the call reads the set, if it can, and changes nothing, because there is no such operation.
    let result = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NO_SUCH, set, none, SET_BYTES) };
    let is_refused = result == -1 && process::errno() == Errno::FAULT;
    process::set_errno(before);
    !is_refused
}

#[cfg(test)]
mod tests;
