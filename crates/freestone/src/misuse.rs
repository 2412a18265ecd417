//! Reporting what a program did to the heap that it must not do.
//!
//! Writes to standard error what happened to which block, and where the thread is ([`finding`]), then aborts or returns as the option `misuse` says. The
//! block is left alone in any case.
//!
//! Layer: above `config`, below `span`.

use crate::config::{MisusePolicy, Settings};
use finding::Finding;

pub(crate) mod crime;
pub(crate) mod finding;
#[cfg(test)]
pub(crate) mod seen;

pub use crime::Access;
pub(crate) use crime::Misuse;

/// Reports `misuse` of `address` by the thread whose heap has the number `thread`, and aborts, as the option `misuse` says.
#[cold]
pub(crate) fn misuse(settings: &Settings, misuse: Misuse, address: usize, thread: u32) {
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
