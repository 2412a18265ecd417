//! Pools in memory of the process's allocator, and magazines: what the C functions of pools (`freestone_bounded::pool`) leave to this library.
#![allow(unsafe_code)]
//!
//! # Safety
//! "Live handle" is defined in `freestone_bounded::pool`. Each `error` is null or points to a writable `freestone_error_t`.

use crate::failure::refused;
use core::ptr::NonNull;
use freestone_bounded::error::FreestoneError;
use freestone_bounded::pool::place::{FreestonePoolShape, Plan, Pool};
use freestone_bounded::pool::{plan, refusal::Refusal};
use heap::door;

/// Creates a pool in memory of its own. Null, `errno` and the reason in `*error` if that is refused.
///
/// # Safety
/// - `shape` is null or points to as many bytes as its member `size` says; `error` is as the module header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_new(shape: *const FreestonePoolShape, error: *mut FreestoneError) -> *mut Pool {
    // SAFETY: `shape` is null or has as many bytes as it says (this function's contract).
    let plan = unsafe { plan(shape) };
    match plan.and_then(|plan| create(plan).map_err(Refusal::to_c)) {
        Ok(pool) => pool.as_ptr(),
        // SAFETY: `error` is null or writable.
        Err(refusal) => unsafe { refused(error, refusal) },
    }
}

/// A pool in a block of the process's allocator.
fn create(plan: Plan) -> Result<NonNull<Pool>, Refusal> {
    // SAFETY: the alignment of a plan is a power of two.
    let memory = NonNull::new(unsafe { door::allocate_zeroed(plan.bytes(), plan.align()) });
    let memory = memory.ok_or(Refusal::NoMemory { bytes: plan.bytes() })?;
    // SAFETY: the block was just allocated: zero, aligned and as large as the plan says, and no other code has its address; `door::free` frees it.
    unsafe { plan.carry_out(memory, Some(door::free)) }.inspect_err(|_| {
        // SAFETY: the block was allocated above, and no pool is in it.
        unsafe { door::free(memory.as_ptr()) };
    })
}
