//! Rounding to powers of two.
//!
//! `align` has to be a power of two in every function here; debug builds check it.

/// `value` rounded up to a multiple of `align`, or `None` if that does not fit in `usize`.
///
/// ```
/// use freestone_base::align;
///
/// assert_eq!(align::checked_up(17, 16), Some(32));
/// assert_eq!(align::checked_up(usize::MAX, 16), None);
/// ```
#[must_use]
#[inline]
pub const fn checked_up(value: usize, align: usize) -> Option<usize> {
    debug_assert!(align.is_power_of_two());
    match value.checked_add(align - 1) {
        Some(sum) => Some(sum & !(align - 1)),
        None => None,
    }
}

/// `value` rounded up to a multiple of `align`. The sum must fit in `usize`.
///
/// ```
/// assert_eq!(freestone_base::align::up(4097, 4096), 8192);
/// ```
#[must_use]
#[inline]
pub const fn up(value: usize, align: usize) -> usize {
    debug_assert!(align.is_power_of_two());
    value.wrapping_add(align - 1) & !(align - 1)
}

/// `value` rounded down to a multiple of `align`.
///
/// ```
/// assert_eq!(freestone_base::align::down(4097, 4096), 4096);
/// ```
#[must_use]
#[inline]
pub const fn down(value: usize, align: usize) -> usize {
    debug_assert!(align.is_power_of_two());
    value & !(align - 1)
}

/// Whether `value` is a multiple of `align`.
///
/// ```
/// assert!(freestone_base::align::is_aligned(64, 16));
/// ```
#[must_use]
#[inline]
pub const fn is_aligned(value: usize, align: usize) -> bool {
    debug_assert!(align.is_power_of_two());
    value & (align - 1) == 0
}

#[cfg(test)]
mod tests;
