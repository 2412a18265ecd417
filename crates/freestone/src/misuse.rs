//! Reporting what a program did to the heap that it must not do.
//!
//! Writes to standard error what happened to which block, and where the thread is ([`finding`]), then aborts or returns as the option `misuse` says. The
//! block is left alone in any case.
//!
//! Layer: above `config`, below `span`.
#![allow(unsafe_code)]
//!
//! # Safety
//! The pointer to the judge is null or that of a function of its type, which [`judge_families`] stored.

use crate::config::{MisusePolicy, Settings};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use finding::Finding;

pub(crate) mod crime;
pub(crate) mod finding;
#[cfg(test)]
pub(crate) mod seen;

pub use crime::Access;
pub(crate) use crime::Misuse;

/// Says whether all of the process allocates and frees by the same functions: else a block of one family that another frees is no crime.
static JUDGE: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Has a function judge whether the families of functions are told apart in this process. It is asked when a block is freed by another family
/// than allocated it. Without one they are.
pub fn judge_families(are_told_apart: fn() -> bool) {
    JUDGE.store(are_told_apart as *mut (), Ordering::Relaxed);
}

fn are_told_apart() -> bool {
    let judge = JUDGE.load(Ordering::Relaxed);
    if judge.is_null() {
        return true;
    }
    // SAFETY: the pointer is that of a function of this type, which `judge_families` stored.
    let judge = unsafe { core::mem::transmute::<*mut (), fn() -> bool>(judge) };
    judge()
}

/// Reports `misuse` of `address` by the thread whose heap has the number `thread`, and aborts, as the option `misuse` says.
#[cold]
pub(crate) fn misuse(settings: &Settings, misuse: Misuse, address: usize, thread: u32) {
    if matches!(misuse, Misuse::WrongFamily { .. }) && !are_told_apart() {
        return;
    }
    if Finding::new(misuse, address, thread).report(settings) == MisusePolicy::Abort {
        abort();
    }
}

/// Ends the process after a report.
#[cfg(not(all(test, shuttle)))]
pub(crate) fn abort() {
    freestone_os::process::abort()
}

/// The program in a model passes no invalid pointer: a report is a mistake of the heap.
#[cfg(all(test, shuttle))]
pub(crate) fn abort() {
    std::panic!("an invalid free was reported, and the program made none")
}
