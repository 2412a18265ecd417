//! `freestone_error_t`: why a call was refused, in the form that C programs read.
#![allow(unsafe_code)]
//!
//! | codes | of |
//! |---|---|
//! | 0 | success |
//! | 1 to 99 | TLSF heaps (`tlsf::refusal`) |
//! | 101 to 199 | pools (`pool::refusal`) |
//! | 201 to 299 | explicit heaps and the process (the crate of libfreestone) |
//! | 301 to 399 | every function: [`BAD_STRUCT`] |
//!
//! Codes keep their numbers for ever; new ones come at the end of their range.
//!
//! # Safety
//! One block writes through a pointer that C programs pass; [`FreestoneError::store`] states its contract.

use core::ffi::c_int;

/// `FREESTONE_OK`.
pub const OK: c_int = 0;

/// `FREESTONE_BAD_STRUCT`: a structure was not passed, or is smaller than its first version.
pub const BAD_STRUCT: c_int = 301;

/// `freestone_error_t`: a code, and the numbers of its message. The rest is 0. Its members never change.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreestoneError {
    /// What went wrong, or [`OK`].
    pub code: c_int,
    /// The address that was passed.
    pub address: usize,
    /// The block or region in question.
    pub block: usize,
    /// Bytes, or a count: what was requested.
    pub value: usize,
    /// Bytes, or a count: what would have been accepted.
    pub limit: usize,
}

impl FreestoneError {
    /// Success.
    pub const NONE: Self = Self { code: OK, address: 0, block: 0, value: 0, limit: 0 };

    /// A structure of `size` bytes where its first version has `least`.
    #[must_use]
    pub const fn bad_struct(size: usize, least: usize) -> Self {
        Self { code: BAD_STRUCT, value: size, limit: least, ..Self::NONE }
    }

    /// Stores the error at `place`, unless that is null, and returns its code.
    ///
    /// # Safety
    /// - `place` is null or points to a writable `freestone_error_t`.
    pub unsafe fn store(self, place: *mut Self) -> c_int {
        if !place.is_null() {
            // SAFETY: `place` is not null, so it points to a writable structure (this function's contract).
            unsafe { place.write(self) };
        }
        self.code
    }
}
