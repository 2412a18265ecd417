//! Naming what a wrong program did.
//!
//! One line on standard error that says what happened to which block, then what the option `misuse` says. The block is left alone in any
//! case.
//!
//! Layer: beside `config`.

use crate::config::{MisusePolicy, Settings};
use core::fmt;

/// What a program did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// Freed, or reallocated, a block that is free.
    DoubleFree {
        /// Bytes of the block.
        block_bytes: usize,
    },
    /// Passed an address inside a block.
    Interior {
        /// Bytes of the block.
        block_bytes: usize,
        /// How far inside.
        offset: usize,
    },
    /// Passed an address that no allocation returned.
    Foreign,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoubleFree { .. } => f.write_str("double free"),
            Self::Interior { .. } => f.write_str("free of an address inside a block"),
            Self::Foreign => f.write_str("free of a pointer that Freestone did not allocate, or has taken back"),
        }
    }
}

/// Reports `misuse` of `address` by the thread numbered `thread`.
#[cold]
pub(crate) fn misuse(settings: &Settings, misuse: Misuse, address: usize, thread: u32) {
    match settings.misuse() {
        MisusePolicy::Abort => {
            say(misuse, address, thread);
            end()
        }
        MisusePolicy::Report => say(misuse, address, thread),
        MisusePolicy::Ignore => {}
    }
}

#[cfg(not(all(test, shuttle)))]
fn end() {
    freestone_os::process::abort()
}

/// The program that a model plays does nothing wrong: what is named is the heap's own mistake.
#[cfg(all(test, shuttle))]
fn end() {
    std::panic!("a block was named as misused by a program that did nothing wrong")
}

fn say(misuse: Misuse, address: usize, thread: u32) {
    match misuse {
        Misuse::DoubleFree { block_bytes } => {
            freestone_os::report(format_args!(
                "{misuse} of {address:#x} ({block_bytes}-byte block, freed by thread {thread})"
            ));
        }
        Misuse::Interior { block_bytes, offset } => freestone_os::report(format_args!(
            "{misuse}: {address:#x} is {offset} bytes into a {block_bytes}-byte block (freed by thread {thread})"
        )),
        Misuse::Foreign => freestone_os::report(format_args!("{misuse}: {address:#x} (freed by thread {thread})")),
    }
}
