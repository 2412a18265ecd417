//! What a thread knows of its own stack: which part of it can be read.
#![allow(unsafe_code)]
//!
//! ```text
//!  low                                top
//!  │ readable, as the kernel said once │     a thread's stack ends below its thread pointer; the first thread's below what the kernel put there
//!        ▲ stack pointer
//!        └── all that a stack above it needs: no question
//! ```
//!
//! A thread's stack above its stack pointer stays mapped as long as the thread runs. So it is enough to ask about each OS page of it once, from the page
//! of the stack pointer up to the stack's end, without a gap: no stack that is elsewhere (of a signal handler, of a coroutine) passes for the thread's.
//! On such a stack the kernel is asked each time.
//!
//! Threads: belongs to one at a time, and is forgotten when another gets it ([`OwnStack::forget`], or the thread pointer tells). A signal handler that interrupts the thread here may write it
//! too: both write what holds for the thread.
//!
//! # Safety
//! The registers that are read here hold addresses, which are not followed.

use crate::linux::process_facts::told_at_start;
use crate::process::os_page_bytes;
use crate::readable::{KnownWords, Reader, can_be_read};
use core::cell::Cell;

/// The largest part of a stack that is asked about.
const MOST_BYTES: usize = 8 << 20;

/// So often it is tried to find the stack pointer in the thread's stack.
const TRIES: u32 = 8;

/// See the module header. Zero knows nothing.
#[derive(Debug)]
pub struct OwnStack {
    low: Cell<usize>,
    top: Cell<usize>,
    /// The thread pointer of the thread whose stack it is.
    thread: Cell<usize>,
    n_failed: Cell<u32>,
}

impl Default for OwnStack {
    fn default() -> Self {
        Self::new()
    }
}

impl OwnStack {
    /// Nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self { low: Cell::new(0), top: Cell::new(0), thread: Cell::new(0), n_failed: Cell::new(0) }
    }

    /// Forgets everything: another thread gets it.
    pub fn forget(&self) {
        self.top.set(0);
        self.n_failed.set(0);
    }

    /// A reader for the calling thread, whose stack pointer is `stack`.
    #[inline]
    pub(super) fn reader(&self, stack: usize) -> Reader {
        let start = stack & !(os_page_bytes() - 1);
        let (low, top) = (self.low.get(), self.top.get());
        let is_known = start >= low && start < top && self.thread.get() == thread_pointer();
        let top = if is_known { top } else { self.look(start) };
        // SAFETY: from the OS page of the stack pointer to the top the thread's own stack could be read, and it stays while the thread runs.
        unsafe { Reader::with_known(start, top.saturating_sub(start)) }
    }

    /// The words of the calling thread's stack from its stack pointer on, which is `stack`: none unless they are known to be readable.
    #[inline]
    pub(super) fn words(&self, stack: usize) -> KnownWords {
        let (low, top) = (self.low.get(), self.top.get());
        let is_known = stack >= low && stack < top && stack % size_of::<usize>() == 0;
        let n = if is_known && self.thread.get() == thread_pointer() { (top - stack) / size_of::<usize>() } else { 0 };
        // SAFETY: from `low` to the top the thread's own stack could be read, and above the stack pointer it stays while the thread runs; `stack` is aligned.
        unsafe { KnownWords::new(stack, n) }
    }

    /// Asks the kernel about the thread's stack from `start` on. Returns where it ends; 0 if `start` is not in it, as far as is known.
    #[cold]
    fn look(&self, start: usize) -> usize {
        if self.thread.replace(thread_pointer()) != thread_pointer() {
            self.forget();
        }
        if self.n_failed.get() >= TRIES {
            return 0;
        }
        let is_near = |top: &usize| *top > start && *top - start <= MOST_BYTES;
        let top = ends().into_iter().map(|end| end & !(size_of::<usize>() - 1)).find(is_near).unwrap_or(0);
        // What was found before is not asked about again.
        let end = if top == self.top.get() { self.low.get() } else { top };
        if top == 0 || (start..end).step_by(os_page_bytes()).any(|page| !can_be_read(page)) {
            self.n_failed.set(self.n_failed.get() + 1);
            return 0;
        }
        self.low.set(start);
        self.top.set(top);
        top
    }
}

/// Where the calling thread's stack may end: what the kernel put above the first thread's, and the thread pointer, which the C library puts above the
/// stacks of all others.
fn ends() -> [usize; 2] {
    [told_at_start(libc::AT_RANDOM), thread_pointer()]
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the first word that the register leads to is its own address.
    unsafe { core::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly)) };
    pointer
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the instruction copies a register.
    unsafe { core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

#[cfg(all(target_arch = "riscv64", not(miri)))]
fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the instruction copies a register.
    unsafe { core::arch::asm!("mv {}, tp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
fn thread_pointer() -> usize {
    0
}

#[cfg(test)]
mod tests;
