use super::*;

#[test]
fn rounding_agrees_with_128_bit_arithmetic() {
    for align_log2 in 0..usize::BITS {
        let align = 1usize << align_log2;
        for base in [0usize, 1, 15, 16, 17, 4095, 4096, usize::MAX / 2, usize::MAX - 4096, usize::MAX - 1, usize::MAX] {
            let wide = (base as u128).div_ceil(align as u128) * align as u128;
            assert_eq!(checked_up(base, align), usize::try_from(wide).ok(), "{base} up to {align}");
            if let Ok(exact) = usize::try_from(wide) {
                assert_eq!(up(base, align), exact);
            }
            assert_eq!(down(base, align) as u128, base as u128 / align as u128 * align as u128);
            assert_eq!(is_aligned(base, align), base % align == 0);
        }
    }
}
