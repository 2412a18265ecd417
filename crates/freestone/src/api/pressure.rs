//! When memory is short: caches are emptied, the program is told, and only then an allocation fails.
#![allow(unsafe_code)]
//!
//! ```text
//!  an allocation passed the soft limit, or failed ─▶ this thread's caches go home, dirty memory goes back
//!                                                 ─▶ the callback, if the program gave one
//!                                                 ─▶ failed: one more try; then null and ENOMEM
//! ```
//!
//! Cost: nothing until a limit is met; the soft one is met once, and again with every 1/64 of it beyond.
//!
//! # Safety
//! The callback is a function with its argument, set together under a lock; it is called with no lock held.

use crate::api::global;
use crate::thread::current;
use core::ffi::c_void;
use freestone_base::lock::{Lock, Parking};
use freestone_base::sync::{AtomicUsize, Ordering};
use freestone_os::Futex;

/// What a program is told when memory is short: the bytes in use, and the argument it gave.
pub type Callback = unsafe extern "C" fn(in_use_bytes: usize, argument: *mut c_void);

#[derive(Clone, Copy, Debug)]
struct Told {
    callback: Callback,
    argument: *mut c_void,
}

// SAFETY: whoever sets an argument promises that any thread may use it.
unsafe impl Send for Told {}

/// Rank of the lock: outside all others, and held only to read or write two words.
const RANK: u8 = 5;

/// Whom to tell, and whether somebody is being told.
pub struct Pressure {
    told: Lock<Option<Told>, Futex, RANK>,
    /// The thread that tells ([`Parking::this_thread`]); 0: nobody is being told.
    teller: AtomicUsize,
}

impl Pressure {
    /// Nobody to tell.
    #[must_use]
    pub const fn nobody() -> Self {
        Self { told: Lock::new(None), teller: AtomicUsize::new(0) }
    }

    /// Takes the lock and keeps it, before a fork.
    pub(super) fn lock_for_fork(&self) {
        self.told.acquire_raw();
    }

    /// Lets it go, in parent or child.
    ///
    /// # Safety
    /// - This thread took it, or is the copy of the one that did.
    pub(super) unsafe fn unlock_after_fork(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.told.release_raw() }
    }

    /// In a forked child, a thread that was telling is there only if it is the one that forked.
    pub(super) fn forked(&self) {
        if self.teller.load(Ordering::Relaxed) != Futex::this_thread() {
            self.teller.store(0, Ordering::Relaxed);
        }
    }
}

/// Makes `callback` what is called, with `argument`, when the soft limit was passed or an allocation is about to fail; `None`: nothing.
/// It may allocate and free; what it allocates brings no further call. It runs in whichever thread allocates, with that thread's locks.
///
/// # Safety
/// - The function may be called with the argument at any time, by any thread, until another one is set and calls under way are over.
pub unsafe fn on_pressure(callback: Option<Callback>, argument: *mut c_void) {
    *global::pressure().told.lock() = callback.map(|callback| Told { callback, argument });
}

/// Passes on what an allocation gave. If it passed the soft limit, or gave nothing, room is made first; and where it gave nothing it is
/// tried `again`, once.
#[inline]
pub(super) fn watch<R>(got: R, is_none: impl Fn(&R) -> bool, again: impl FnOnce() -> R) -> R {
    if !is_none(&got) && !global::shared().pages.is_pressed() {
        return got;
    }
    make_room();
    if is_none(&got) { again() } else { got }
}

#[cold]
fn make_room() {
    if current::is_starting() {
        // What a signal handler asked for in the middle of the thread's start fails whatever is done.
        return;
    }
    let (pages, this) = (&global::shared().pages, global::pressure());
    pages.relieved();
    global::purge();
    if this.teller.compare_exchange(0, Futex::this_thread(), Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    let told = *this.told.lock();
    if let Some(told) = told {
        // SAFETY: the promise at `on_pressure`; no lock is held.
        unsafe { (told.callback)(pages.limited_bytes(), told.argument) };
    }
    this.teller.store(0, Ordering::Release);
}
