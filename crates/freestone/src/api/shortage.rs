//! When memory is short: caches are emptied and the program's listener is called before an allocation fails.
//!
//! ```text
//!  an allocation passed the soft limit, or failed ─▶ this thread's caches are flushed, dirty memory goes back
//!                                                 ─▶ the listener is called, if there is one (`pressure`)
//!                                                 ─▶ if it failed: one more try; then null and ENOMEM
//!  the limit of an explicit heap refused it       ─▶ the heap's caches are flushed, one more try
//!                                                 ─▶ if it failed: the listener is called, another try; then null and ENOMEM
//! ```
//!
//! Cost: a test of one flag on the slow paths until a limit is passed. The soft limit is reported once, and again with each further 1/64 of it.

use crate::api::local_heap;
use crate::api::process::PROCESS;
use crate::thread::current;
use crate::thread::life::succession::Which;
use freestone_os::{Errno, process};

/// Returns the result of an allocation. If it passed the soft limit or failed, makes room first; if it failed, tries `again` once.
#[inline]
pub(super) fn handle<R>(got: R, is_short: impl Fn(&R) -> bool, again: impl FnOnce() -> R) -> R {
    if !is_short(&got) && !is_pressed() {
        return got;
    }
    make_room();
    if is_short(&got) { again() } else { got }
}

/// Makes room if the soft limit was passed.
#[inline]
pub(super) fn relieve() {
    if is_pressed() {
        make_room();
    }
}

/// Whether the soft limit was passed since room was last made.
pub(super) fn is_pressed() -> bool {
    PROCESS.shared.pages.is_pressed()
}

/// Empties this thread's caches, gives dirty memory back, and calls the program's listener.
#[cold]
pub(super) fn make_room() {
    if current::is_starting() {
        // A signal handler allocates while its thread starts: that fails, however much memory is free.
        return;
    }
    PROCESS.shared.pages.relieved();
    // One failure after another: what waits for idle threads is not looked through each time.
    local_heap::purge(Which::Rested);
    notify();
}

/// Calls the program's listener.
#[inline(never)]
pub(super) fn notify() {
    PROCESS.pressure.notify(|| PROCESS.shared.pages.limited_bytes());
}

/// Returns `block`; sets `errno` to `ENOMEM` if it is null.
pub(super) fn or_enomem(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        process::set_errno(Errno::NOMEM);
    }
    block
}

#[cfg(test)]
mod tests;
