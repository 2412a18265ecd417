//! Ctrl-C: the first asks every loop of the lab to stop where its results are whole. And a reader that has seen enough ends the lab quietly.
//!
//! # Safety
//! Sets the disposition of a signal to the system's default.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Begins to listen; a second Ctrl-C ends the lab at once.
pub(crate) fn listen() {
    let handler = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    // Fails only when a handler is there already, which listens just as well.
    let _ = ctrlc::set_handler(handler);
}

/// Lets a closed pipe (`freestone bench --list | head`) end the lab as it ends other programs, not with a panic.
pub(crate) fn end_with_the_reader() {
    // SAFETY: the default disposition calls no code of this program.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Whether the user wants the lab to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
