//! The number that a stack is found by.

/// A hash of the addresses of a stack, not 0.
///
/// ```
/// use freestone_os::stack::hash_of;
///
/// assert_ne!(hash_of(&[1, 2]), hash_of(&[2, 1]));
/// ```
#[must_use]
pub fn hash_of(addresses: &[usize]) -> u64 {
    let mixed = addresses.iter().fold(addresses.len() as u64, |hash, &address| {
        let hash = (hash ^ address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^ hash >> 29
    });
    mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ mixed >> 32 | 1
}
