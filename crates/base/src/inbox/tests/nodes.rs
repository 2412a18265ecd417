//! Nodes from the system's allocator, for tests and models.
#![allow(unsafe_code)]
//!
//! # Safety
//! Chains consist of nodes that [`node`] made, and are consumed once.
extern crate std;

use super::Node;
use core::ptr;
use std::boxed::Box;

/// A node that links to nothing.
pub(crate) fn node() -> *mut Node {
    Box::into_raw(Box::new(Node { next: ptr::null_mut() }))
}

/// Frees a chain and returns its length.
pub(crate) fn consume(mut chain: *mut Node) -> usize {
    let mut len = 0;
    while !chain.is_null() {
        // SAFETY: `node` made every node of the chain, which is consumed once.
        let node = unsafe { Box::from_raw(chain) };
        chain = node.next;
        len += 1;
    }
    len
}
