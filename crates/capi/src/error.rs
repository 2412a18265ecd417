//! `freestone_error_t`: why a pool or a TLSF heap refused a call, in the form that C programs read.
#![allow(unsafe_code)]
//!
//! | codes | of |
//! |---|---|
//! | 0 | success |
//! | 1 to 99 | TLSF heaps, `freestone_tlsf_code_t` ([`crate::tlsf::refusal`]) |
//! | 101 to 199 | pools, `freestone_pool_code_t` ([`crate::pool::refusal`]) |
//!
//! Codes keep their numbers for ever; new ones come at the end of their range.
//!
//! # Safety
//! One block writes through a pointer that C programs pass; [`FreestoneError::store`] states its contract.

use core::ffi::c_int;

/// `FREESTONE_OK`.
pub(crate) const OK: c_int = 0;

/// `freestone_error_t` of `freestone.h`: a code, and the numbers of its message. The rest is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreestoneError {
    /// What went wrong, or [`OK`].
    pub(crate) code: c_int,
    /// The address that was passed.
    pub(crate) address: usize,
    /// The block or region in question.
    pub(crate) block: usize,
    /// Bytes, or a count: what was requested.
    pub(crate) value: usize,
    /// Bytes, or a count: what would have been accepted.
    pub(crate) limit: usize,
}

impl FreestoneError {
    /// Success.
    pub(crate) const NONE: Self = Self { code: OK, address: 0, block: 0, value: 0, limit: 0 };

    /// Stores the error at `place`, unless that is null, and returns its code.
    ///
    /// # Safety
    /// - `place` is null or points to a writable `freestone_error_t`.
    pub(crate) unsafe fn store(self, place: *mut Self) -> c_int {
        if !place.is_null() {
            // SAFETY: `place` is not null, so it points to a writable structure (this function's contract).
            unsafe { place.write(self) };
        }
        self.code
    }
}
