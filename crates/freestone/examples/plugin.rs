//! A shared library whose own allocator is the crate, for `tests/plugin.rs`: what a plug-in in Rust is.
#![allow(unsafe_code)]
//! # Safety
//! The exported name is no other library's.

#[global_allocator]
static ALLOCATOR: freestone::Freestone = freestone::Freestone;

/// Allocates and frees `n` blocks in the calling thread; their sum.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_plugin_work(n: u64) -> u64 {
    let blocks: Vec<Box<u64>> = (0..n).map(Box::new).collect();
    blocks.iter().map(|block| **block).sum()
}
