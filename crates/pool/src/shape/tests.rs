use super::*;

#[test]
fn spacing_is_the_next_power_of_two_that_holds_a_block_and_keeps_its_alignment() {
    for (bytes, align, spacing) in
        [(1, 1, 8), (8, 8, 8), (9, 1, 16), (48, 16, 64), (64, 8, 64), (65, 8, 128), (24, 256, 256)]
    {
        let shape = Shape::aligned(bytes, 3, align).unwrap();
        assert_eq!((shape.block_bytes(), shape.spacing()), (bytes, spacing));
        assert!(shape.align() >= align.max(8) && shape.spacing().is_multiple_of(shape.align()));
        assert_eq!(shape.layout(), Layout::from_size_align(bytes, shape.align()).unwrap());
    }
}

#[test]
fn a_region_holds_the_blocks_and_their_bookkeeping() {
    let shape = Shape::new(48, 65).unwrap();
    assert_eq!(shape.region_bytes(), 65 * 64 + 2 * 16);
    assert_eq!(shape.shared_region_bytes(), 65 * 64 + 65 * size_of::<AtomicU32>() + HEADS_BYTES);
}

#[test]
fn sizes_and_counts_of_zero_and_alignments_that_are_no_power_of_two_are_refused() {
    assert_eq!(Shape::new(0, 4), Err(Error::ZeroBlockSize));
    assert_eq!(Shape::new(4, 0), Err(Error::ZeroCount));
    assert_eq!(Shape::of::<()>(4), Err(Error::ZeroBlockSize));
    for align in [0, 3, 12, usize::MAX] {
        assert_eq!(Shape::aligned(4, 4, align), Err(Error::BadAlignment { align }));
    }
}

#[test]
fn no_product_wraps_to_a_small_region() {
    let most = isize::MAX as usize;
    for (block_bytes, count) in [
        (usize::MAX, 1),
        (most, 1),
        (most / 2 + 2, 2),
        (1, usize::MAX),
        (1, most),
        (1 << (usize::BITS / 2), 1 << (usize::BITS / 2)),
        (usize::MAX / 2, usize::MAX / 2),
    ] {
        assert_eq!(Shape::new(block_bytes, count), Err(Error::TooLarge { block_bytes, count }));
    }
    assert!(Shape::aligned(1, 1, 1 << (usize::BITS - 1)).is_err());
    assert!(Shape::new(most / 4, 1).is_ok());
}

#[test]
fn the_largest_pool_is_one_whose_bookkeeping_fits_too() {
    let most = (isize::MAX as usize - groups::bytes(1) - HEADS_BYTES) / (8 + size_of::<AtomicU32>());
    assert!(Shape::new(8, most).is_ok());
    assert_eq!(Shape::new(8, most + 1), Err(Error::TooLarge { block_bytes: 8, count: most + 1 }));
}
