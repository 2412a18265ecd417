//! What `Box::new` and its drop compile to, for `cargo xtask hotpath` to count.
#![allow(unsafe_code)]
//!
//! # Safety
//! The two functions are exported under plain names so that they can be found in the disassembly; nothing else has these names.

use std::hint::black_box;
use std::mem::MaybeUninit;

#[global_allocator]
static ALLOCATOR: freestone::Freestone = freestone::Freestone;

/// 48 bytes, the size the instruction budget is stated for; uninitialised, so that the copying of a value into the box is not counted.
type Payload = MaybeUninit<[u64; 6]>;

/// The allocation, alone in a function.
// SAFETY: see the module header.
#[inline(never)]
#[unsafe(no_mangle)]
pub fn hotpath_box_new() -> Box<Payload> {
    Box::new(MaybeUninit::uninit())
}

/// The free, alone in a function.
// SAFETY: see the module header.
#[inline(never)]
#[unsafe(no_mangle)]
pub fn hotpath_box_drop(payload: Box<Payload>) {
    drop(payload);
}

fn main() {
    hotpath_box_drop(black_box(hotpath_box_new()));
}
