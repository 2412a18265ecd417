//! Inspecting a TLSF heap: sizes, checks, statistics, a walk over its blocks.
#![allow(unsafe_code)]
//!
//! # Safety
//! "Live handle" is defined in [`crate::tlsf`]. Structures that C programs pass have the size in their member `size`.

use super::Control;
use crate::error::FreestoneError;
use crate::sized::{self, SizedStruct};
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

/// Bytes of a block that may be used; 0 if it is not a block in use.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_usable_size(heap: *const Control, block: *const c_void) -> usize {
    let Some(block) = NonNull::new(block.cast_mut().cast()) else { return 0 };
    // SAFETY: the handle is live.
    let control = unsafe { &*heap };
    // SAFETY: the heap looks only at its own regions, and refuses what is no block in them.
    unsafe { control.heap.usable_size(block) }.unwrap_or(0)
}

/// Checks every invariant. The code of the first that is broken.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_check(heap: *mut Control) -> c_int {
    // SAFETY: the handle is live.
    let control = unsafe { Control::of(heap) };
    let result = control.heap.check();
    control.code(result)
}

/// The error of the last call that was refused; all members are zero if none was.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_last_error(heap: *const Control) -> FreestoneError {
    // SAFETY: the handle is live.
    unsafe { (*heap).last_error }
}

/// `freestone_tlsf_stats_t`.
#[repr(C)]
pub struct TlsfStats {
    size: usize,
    numbers: [u64; 8],
}

// SAFETY: it is `repr(C)`, starts with a `usize`, and consists of integers.
unsafe impl SizedStruct for TlsfStats {
    const LEAST: usize = size_of::<usize>();
}

/// Fills the first `stats->size` bytes of `*stats`. Returns a code.
///
/// # Safety
/// - `heap` is a live handle.
/// - `stats` is null or points to as many writable bytes as its member `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_stats(heap: *const Control, stats: *mut TlsfStats) -> c_int {
    let all = |size| {
        // SAFETY: the handle is live.
        let now = unsafe { &*heap }.heap.stats();
        let numbers = [
            now.region_bytes,
            now.used_blocks,
            now.used_bytes,
            now.free_blocks,
            now.free_bytes,
            now.largest_free_bytes,
            now.overhead_bytes,
            now.fragmentation_permille,
        ];
        TlsfStats { size, numbers: numbers.map(|number| number as u64) }
    };
    // SAFETY: the structure has as many writable bytes as it says (this function's contract).
    unsafe { sized::fill(stats, all) }
}

/// `freestone_tlsf_block_t`.
#[repr(C)]
pub struct TlsfBlock {
    address: *mut c_void,
    usable_bytes: usize,
    block_bytes: usize,
    used: c_int,
}

/// Calls `visit` with every block, in address order within a region, until it returns something other than 0; returns that.
///
/// # Safety
/// - `heap` is a live handle.
/// - `visit` is null or may be called with `context`, and does not touch the heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_tlsf_walk(
    heap: *const Control,
    visit: Option<unsafe extern "C" fn(*const TlsfBlock, *mut c_void) -> c_int>,
    context: *mut c_void,
) -> c_int {
    let Some(visit) = visit else { return 0 };
    // SAFETY: the handle is live, and `visit` does not touch the heap.
    for block in unsafe { &*heap }.heap.blocks() {
        let block = TlsfBlock {
            address: ptr::without_provenance_mut(block.address),
            usable_bytes: block.usable_bytes,
            block_bytes: block.block_bytes,
            used: c_int::from(block.used),
        };
        // SAFETY: `visit` may be called with `context` (this function's contract); the block outlives the call.
        let answer = unsafe { visit(&raw const block, context) };
        if answer != 0 {
            return answer;
        }
    }
    0
}
