//! The listener: the program's function that is called when memory is short.
#![allow(unsafe_code)]
//!
//! One thread at a time calls it; others that are short of memory meanwhile do not wait. `shortage` decides when it is called.
//!
//! # Safety
//! The function and its argument are set together, under a lock; it is called with no lock held.

use core::ffi::c_void;
use freestone_base::lock::{Forker, Lock, Parking};
use freestone_base::sync::{AtomicUsize, Ordering};
use freestone_os::Futex;

/// A function to call when memory is short, with the bytes in use and the argument that was given with it.
///
/// ```
/// use core::ffi::c_void;
/// use core::sync::atomic::{AtomicUsize, Ordering};
/// use freestone::{Callback, Freestone};
///
/// /// Counts its calls in the argument.
/// unsafe extern "C" fn count(_in_use_bytes: usize, calls: *mut c_void) {
///     // SAFETY: the argument is `CALLS`.
///     unsafe { &*calls.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
/// }
///
/// static CALLS: AtomicUsize = AtomicUsize::new(0);
/// let callback: Callback = count;
/// // SAFETY: the argument is a static, and any thread may call the function.
/// unsafe { Freestone.on_pressure(Some(callback), (&raw const CALLS).cast_mut().cast()) };
/// ```
pub type Callback = unsafe extern "C" fn(in_use_bytes: usize, argument: *mut c_void);

#[derive(Clone, Copy, Debug)]
struct Listener {
    callback: Callback,
    argument: *mut c_void,
}

// SAFETY: any thread may pass the argument to the callback, by the contract of `Pressure::listen`, which stores both.
unsafe impl Send for Listener {}

/// Rank of the lock: outside all others, and held only to read or write two words.
const RANK: u8 = 5;

/// Which function is called when memory is short, and whether a call is under way.
pub(super) struct Pressure {
    listener: Lock<Option<Listener>, Futex, RANK>,
    /// The thread that is calling the listener ([`Parking::this_thread`]), or 0.
    notifier: AtomicUsize,
}

impl Pressure {
    /// No listener.
    pub(super) const fn new() -> Self {
        Self { listener: Lock::new(None), notifier: AtomicUsize::new(0) }
    }

    /// Sets the listener, in place of the one before; `None`: nothing is called.
    ///
    /// # Safety
    /// - The function may be called with the argument at any time, by any thread, until another listener is set and calls under way have
    ///   returned.
    pub(super) unsafe fn listen(&self, callback: Option<Callback>, argument: *mut c_void) {
        *self.listener.lock() = callback.map(|callback| Listener { callback, argument });
    }

    /// Calls the listener, unless there is none or a call is under way. It may allocate; its own allocations do not call it again.
    pub(super) fn notify(&self, in_use_bytes: impl FnOnce() -> usize) {
        if self.notifier.compare_exchange(0, Futex::this_thread(), Ordering::Acquire, Ordering::Relaxed).is_err() {
            return;
        }
        let listener = *self.listener.lock();
        if let Some(listener) = listener {
            // SAFETY: any thread may call the listener with this argument, by the contract of `listen`, which stored both; no lock is held.
            unsafe { (listener.callback)(in_use_bytes(), listener.argument) };
        }
        self.notifier.store(0, Ordering::Release);
    }

    /// Takes the lock and keeps it, before a fork.
    pub(super) fn lock_for_fork(&self) {
        self.listener.acquire_raw();
    }

    /// Releases the lock of [`Pressure::lock_for_fork`], in parent or child.
    pub(super) fn unlock_after_fork(&self, forker: Forker) {
        self.listener.release_raw(forker);
    }

    /// In a forked child: a call under way in a thread that does not exist there has ended; one in the thread that forked goes on.
    pub(super) fn forked(&self) {
        if self.notifier.load(Ordering::Relaxed) != Futex::this_thread() {
            self.notifier.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
