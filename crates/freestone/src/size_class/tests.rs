extern crate std;
use super::*;
use freestone_base::units::PAGE_BYTES;

#[test]
fn every_size_to_two_mebibytes_gets_the_smallest_block_that_holds_it() {
    for size in (0..=2 << 20).step_by(if cfg!(miri) { 997 } else { 1 }) {
        let Some(class) = class_of_aligned(size, 1) else {
            assert!(size > SMALL_MAX);
            continue;
        };
        assert!(size <= SMALL_MAX);
        assert_eq!(class, class_of(size));
        assert!(block_bytes(class) >= size);
        assert!(class == 0 || block_bytes(class - 1) < size, "size {size} would fit a smaller class");
    }
}

#[test]
fn waste_column_is_at_most_an_eighth_above_128_bytes() {
    for size in (129..=SMALL_MAX).step_by(if cfg!(miri) { 97 } else { 1 }) {
        let block = block_bytes(class_of(size));
        assert!((block - size) * 8 <= block, "size {size} in a block of {block}");
    }
}

#[test]
fn a_page_of_4_kib_and_a_little_more_fits_closely_also_if_aligned_to_a_cache_line() {
    assert_eq!((block_bytes(class_of(4097)), block_bytes(class_of(4368))), (4368, 4368));
    assert_eq!(span_blocks(class_of(4368)), 15);
    for size in (4097..=8192).step_by(if cfg!(miri) { 97 } else { 1 }) {
        let aligned = class_of_aligned(size, 64).map_or(usize::MAX, block_bytes);
        assert!((aligned - size) * 8 <= aligned, "size {size} in a block of {aligned}");
    }
}

#[test]
fn a_header_before_1_or_8_kib_takes_at_most_a_32nd() {
    assert_eq!([1025, 1056, 8193, 8448].map(|size| block_bytes(class_of(size))), [1056, 1056, 8448, 8448]);
    assert_eq!([1025, 8193].map(|size| span_blocks(class_of(size))), [62, 31]);
    let sizes = (1025..=2048).chain(8193..=16384);
    for size in sizes.step_by(if cfg!(miri) { 97 } else { 1 }) {
        for align in [16, 64] {
            let block = class_of_aligned(size, align).map_or(usize::MAX, block_bytes);
            assert!((block - size) * 9 <= block, "size {size}, aligned to {align}, in a block of {block}");
        }
    }
}

#[test]
fn aligned_requests_get_blocks_that_are_multiples_of_the_alignment() {
    for align_log2 in 0..=16 {
        let align = 1 << align_log2;
        for size in (0..=SMALL_MAX + 64).step_by(if cfg!(miri) { 997 } else { 7 }) {
            if let Some(class) = class_of_aligned(size, align) {
                assert!(block_bytes(class) >= size && block_bytes(class).is_multiple_of(align.min(GRANULE_BYTES)));
                assert!(align <= GRANULE_BYTES || block_bytes(class).is_multiple_of(align));
            } else {
                assert!(size.max(align) > SMALL_MAX);
            }
        }
    }
}

#[test]
fn the_block_of_every_offset_agrees_with_division() {
    for class in 0..N_CLASSES {
        let span = span_pages(class).to_bytes().0;
        for offset in (0..span).step_by(if cfg!(miri) { 1009 } else { 1 }) {
            let block = block_bytes(class);
            assert_eq!(block_at(class, offset), (offset / block, offset.is_multiple_of(block)));
        }
        assert!(span_blocks(class) >= 7 && span_blocks(class) <= PAGE_BYTES / GRANULE_BYTES);
    }
}

#[test]
fn the_last_class_serves_no_size_and_is_the_next_longer_one() {
    assert_eq!(class_of(SMALL_MAX), LAST_CLASS - 1);
    assert_eq!(block_bytes(LAST_CLASS), SMALL_MAX + GRANULE_BYTES);
}
