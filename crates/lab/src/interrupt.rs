//! Ctrl-C: the first asks every loop of the lab to stop where its results are whole.

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

/// Whether the user wants the lab to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
