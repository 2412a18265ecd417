//! What was reported in the thread of a test.

use super::crime::Misuse;
use std::cell::RefCell;
use std::vec::Vec;

std::thread_local! {
    static SEEN: RefCell<Vec<(Misuse, usize)>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn add(misuse: Misuse, address: usize) {
    SEEN.with_borrow_mut(|seen| seen.push((misuse, address)));
}

/// Takes what was reported since the last call.
pub(crate) fn take() -> Vec<(Misuse, usize)> {
    SEEN.take()
}
