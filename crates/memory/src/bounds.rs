//! Whether an access is worth a check, and the check.
//!
//! An address is compared with one range: that of the allocator's blocks once it is known, all addresses before, so that the allocator is
//! asked, and none if nothing is to be checked.

use crate::allocator::{self, CheckedRange};
use core::ffi::CStr;
use freestone_base::sync::{AtomicUsize, Ordering};

/// The first address that is worth a check.
static START: AtomicUsize = AtomicUsize::new(0);

/// How many addresses are. Stored after the start, and loaded before it: so a range with the old start has the old length, all addresses.
static BYTES: AtomicUsize = AtomicUsize::new(ALL);

/// The length of the range before the allocator has said what it is.
const ALL: usize = usize::MAX;

/// Whether an address may be one of a block.
#[inline(always)]
fn is_in_range(address: usize) -> bool {
    let bytes = BYTES.load(Ordering::Acquire);
    address.wrapping_sub(START.load(Ordering::Relaxed)) < bytes
}

/// Whether an access at `address` is worth a check.
#[inline(always)]
pub(crate) fn is_checked(address: *const u8) -> bool {
    is_in_range(address.addr())
}

/// Checks that `function` may write `bytes` at `address`.
#[inline]
pub(crate) fn check_write(address: *const u8, bytes: usize, function: &'static CStr) {
    if is_in_range(address.addr()) {
        check(address.addr(), bytes, true, function);
    }
}

/// Checks that `function` may read `bytes` at `address`.
#[inline]
pub(crate) fn check_read(address: *const u8, bytes: usize, function: &'static CStr) {
    if is_in_range(address.addr()) {
        check(address.addr(), bytes, false, function);
    }
}

#[inline(never)]
fn check(address: usize, bytes: usize, is_write: bool, function: &'static CStr) {
    if BYTES.load(Ordering::Relaxed) != ALL || (learn() && is_in_range(address)) {
        allocator::check_access(address, bytes, is_write, function);
    }
}

/// Asks which addresses are worth a check; `false` if that is not known yet.
#[cold]
fn learn() -> bool {
    let (start, bytes) = match allocator::checked_range() {
        CheckedRange::Unknown => return false,
        CheckedRange::Nothing => (0, 0),
        CheckedRange::Blocks(start, bytes) => (start, bytes),
    };
    START.store(start, Ordering::Relaxed);
    BYTES.store(bytes, Ordering::Release);
    true
}
