//! Reporting invalid frees.
//!
//! Writes one line to standard error that says what happened to which block, then aborts or returns as the option `misuse` says. The block is
//! left alone in any case.
//!
//! Layer: above `config`, below `span`.

use crate::config::{MisusePolicy, Settings};
use core::fmt;

/// What is wrong with a pointer that the program passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// It is a block that is free already.
    DoubleFree {
        /// Bytes of the block.
        block_bytes: usize,
    },
    /// It points inside a block.
    Interior {
        /// Bytes of the block.
        block_bytes: usize,
        /// Bytes from the block's start.
        offset: usize,
    },
    /// No allocation returned it.
    Foreign,
    /// It is a block that was free when the program wrote to it. The address is 0 if only the consequence is known: that the bin's next block,
    /// which the link of a block named that was allocated meanwhile, is none.
    WrittenFree {
        /// Bytes of the block.
        block_bytes: usize,
    },
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoubleFree { .. } => f.write_str("double free"),
            Self::Interior { .. } => f.write_str("free of an address inside a block"),
            Self::WrittenFree { .. } => f.write_str("write to a freed block"),
            Self::Foreign => f.write_str("free of a pointer that Freestone did not allocate, or has taken back"),
        }
    }
}

/// Reports `misuse` of `address` by the thread whose heap has the number `thread`, and aborts, as the option `misuse` says.
#[cold]
pub(crate) fn misuse(settings: &Settings, misuse: Misuse, address: usize, thread: u32) {
    #[cfg(test)]
    seen::SEEN.with_borrow_mut(|seen| seen.push((misuse, address)));
    match settings.misuse() {
        MisusePolicy::Abort => {
            report(misuse, address, thread);
            abort()
        }
        MisusePolicy::Report => report(misuse, address, thread),
        MisusePolicy::Ignore => {}
    }
}

#[cfg(not(all(test, shuttle)))]
fn abort() {
    freestone_os::process::abort()
}

/// The program in a model passes no invalid pointer: a report is a mistake of the heap.
#[cfg(all(test, shuttle))]
fn abort() {
    std::panic!("an invalid free was reported, and the program made none")
}

fn report(misuse: Misuse, address: usize, thread: u32) {
    match misuse {
        Misuse::DoubleFree { block_bytes } => {
            freestone_os::report(format_args!(
                "{misuse} of {address:#x} ({block_bytes}-byte block, freed by thread {thread})"
            ));
        }
        Misuse::Interior { block_bytes, offset } => freestone_os::report(format_args!(
            "{misuse}: {address:#x} is {offset} bytes into a {block_bytes}-byte block (freed by thread {thread})"
        )),
        Misuse::WrittenFree { block_bytes } if address == 0 => freestone_os::report(format_args!(
            "a freed block of {block_bytes} bytes was written to (found by thread {thread})"
        )),
        Misuse::WrittenFree { block_bytes } => freestone_os::report(format_args!(
            "a freed block of {block_bytes} bytes was written to: {address:#x} (found by thread {thread})"
        )),
        Misuse::Foreign => freestone_os::report(format_args!("{misuse}: {address:#x} (freed by thread {thread})")),
    }
}

/// What was reported in this thread, for tests: they set `misuse` to go on.
#[cfg(test)]
pub(crate) mod seen {
    use super::Misuse;
    use core::cell::RefCell;
    use std::vec::Vec;

    std::thread_local! {
        pub(super) static SEEN: RefCell<Vec<(Misuse, usize)>> = const { RefCell::new(Vec::new()) };
    }

    /// What was reported since this was last asked, with addresses.
    pub(crate) fn take() -> Vec<(Misuse, usize)> {
        SEEN.take()
    }
}
