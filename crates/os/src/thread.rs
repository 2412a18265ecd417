//! The background thread: starting it, its first settings, and joining it.
#![allow(unsafe_code)]
//!
//! ```text
//!  none ── spawn ──▶ busy ── the system has started it ──▶ running ── join ──▶ busy ── it has ended ──▶ none
//! ```
//!
//! Cost: starting and joining are some system calls each. If there can be no thread, `spawn` says why, and nothing has changed.
//!
//! # Safety
//! The handle passes from the thread that moved the state from none to busy to the one that moves it from running to busy.

use crate::Errno;
use crate::kernel::threads::{self, Handle};
use crate::process;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicI32;
use freestone_base::sync::{AtomicU32, Ordering};

pub use crate::kernel::threads::{count_thread_locals, schedule_like_the_first, set_name};
pub use crate::start_function::Main;

const NONE: u32 = 0;
const BUSY: u32 = 1;
const RUNNING: u32 = 2;

/// A slot for one thread, which can be started again after it was joined. See the module header.
#[derive(Debug)]
pub struct Joinable {
    state: AtomicU32,
    handle: UnsafeCell<MaybeUninit<Handle>>,
    /// The process that the thread is in, from before the state is running.
    process: AtomicI32,
}

// SAFETY: only the thread that moved the state to busy accesses the handle; the moves release and acquire.
unsafe impl Sync for Joinable {}

impl Joinable {
    /// No thread.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: AtomicU32::new(NONE), handle: UnsafeCell::new(MaybeUninit::uninit()), process: AtomicI32::new(0) }
    }

    /// Starts `main` as a thread with every signal blocked and a stack of `stack_bytes`, beside what the C library takes of a stack. Keeps `errno`.
    ///
    /// # Errors
    /// It cannot be started, or there is a thread already.
    pub fn spawn(&self, main: Main, stack_bytes: usize) -> Result<(), Errno> {
        if self.state.compare_exchange(NONE, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Err(Errno::EXIST);
        }
        let errno = process::errno();
        // SAFETY: this thread moved the state to busy, so no other accesses the handle.
        let started = threads::start(unsafe { &mut *self.handle.get() }, main, stack_bytes);
        process::set_errno(errno);
        self.process.store(process::id(), Ordering::Relaxed);
        self.state.store(if started.is_ok() { RUNNING } else { NONE }, Ordering::Release);
        started
    }

    /// Waits until the thread has ended, with cancellation of the calling thread put off. Keeps `errno`. Nothing if there is no thread, or another
    /// thread is joining it. A child that a raw system call made, which has no such thread, forgets it.
    pub fn join(&self) {
        if self.state.compare_exchange(RUNNING, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return;
        }
        if self.process.load(Ordering::Relaxed) != process::id() {
            return self.forget();
        }
        let errno = process::errno();
        // SAFETY: this thread moved the state from running to busy, and `spawn` initialised the handle before it stored running.
        let handle = unsafe { self.handle.get().cast::<Handle>().read() };
        // SAFETY: `start` made the handle, and each is joined here only, once for each move to running.
        unsafe { threads::join(handle) };
        process::set_errno(errno);
        self.state.store(NONE, Ordering::Release);
    }

    /// Forgets the thread in a child, where it does not exist.
    pub fn forget(&self) {
        self.state.store(NONE, Ordering::Relaxed);
    }
}

impl Default for Joinable {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
