//! Bit scan, and the two-level logarithm that size tables are built on.
//!
//! A *two-level logarithm* with `2^sub_log2` steps per doubling splits the numbers into first levels (powers of two) and
//! second levels (equal steps inside one): the geometry of TLSF's lists and of free-run lists alike.
//!
//! Source: M. Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004.

/// Floor of log2. `value` must not be 0.
///
/// ```
/// assert_eq!(freestone_base::bits::log2_floor(1000), 9);
/// ```
#[must_use]
#[inline]
pub const fn log2_floor(value: usize) -> u32 {
    debug_assert!(value != 0);
    usize::BITS - 1 - value.leading_zeros()
}

/// Index of the lowest set bit at or above `from`, if there is one. `from` at or beyond the width gives `None`.
///
/// ```
/// use freestone_base::bits;
///
/// assert_eq!(bits::lowest_set_from(0b1001, 1), Some(3));
/// assert_eq!(bits::lowest_set_from(0b1001, 4), None);
/// ```
#[must_use]
#[inline]
pub const fn lowest_set_from(word: u64, from: u32) -> Option<u32> {
    if from >= u64::BITS {
        return None;
    }
    let rest = word & (u64::MAX << from);
    if rest == 0 { None } else { Some(rest.trailing_zeros()) }
}

/// Index of the step that `value` falls in. A value below `2^sub_log2` is its own index; above that, each doubling is cut
/// into `2^sub_log2` equal steps. Monotonic; consecutive steps have consecutive indices.
///
/// ```
/// use freestone_base::bits;
///
/// // Four steps per doubling: 8 and 9 share a step, 10 is in the next one.
/// assert_eq!(bits::two_level_log2(8, 2), bits::two_level_log2(9, 2));
/// assert_eq!(bits::two_level_log2(10, 2), bits::two_level_log2(9, 2) + 1);
/// ```
#[must_use]
#[inline]
pub const fn two_level_log2(value: usize, sub_log2: u32) -> usize {
    if value < (1 << sub_log2) {
        return value;
    }
    let first = log2_floor(value);
    let second = (value >> (first - sub_log2)) & ((1 << sub_log2) - 1);
    (((first - sub_log2 + 1) as usize) << sub_log2) + second
}

#[cfg(test)]
mod tests;
