//! What the program knows and the compiler does not about a branch: that it is rare, or that nobody can predict it.
//!
//! The standard library has both functions, but not in all compilers that Freestone is built with: `build.rs` says what this one has. Without them the
//! code does the same, in an order that may be slower.

#[cfg(cold_path)]
pub use core::hint::cold_path;
#[cfg(unpredictable)]
pub use core::hint::select_unpredictable;

/// Says that the branch it is called in is rarely taken.
#[cfg(not(cold_path))]
#[cold]
pub const fn cold_path() {}

/// One of two values, where `condition` is as likely true as false.
#[cfg(not(unpredictable))]
#[inline(always)]
pub fn select_unpredictable<T>(condition: bool, yes: T, no: T) -> T {
    if condition { yes } else { no }
}
