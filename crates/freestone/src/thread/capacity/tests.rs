use super::*;

#[test]
fn a_bin_of_a_process_of_few_threads_has_its_whole_capacity() {
    assert_eq!(shared(4096, 1024, FEW_HEAPS, 0), 4096);
    assert_eq!(shared(1, 32768, 1, 7), 1);
}

#[test]
fn among_many_threads_all_bins_of_a_class_together_hold_a_fixed_number_of_bytes_and_each_a_block() {
    for (block_bytes, n_heaps) in [(16, 17), (256, 5), (64, 1000), (1024, 64), (32768, 5000)] {
        let bytes = shared(u32::MAX, block_bytes, n_heaps, 0) as usize * block_bytes;
        assert!(bytes * n_heaps as usize <= SHARED_BYTES || bytes == block_bytes, "{block_bytes} {n_heaps}");
    }
    assert_eq!(shared(2, 16, 1000, 0), 2, "a share does not raise the capacity");
    assert_eq!(shared(4096, 32768, 100_000, 0), 1);
}

#[test]
fn a_bin_holds_what_it_has_borrowed_beside_its_share_up_to_its_capacity() {
    assert_eq!(shared(32, 32768, 1000, 5), 6);
    assert_eq!(shared(4096, 64, 1000, 5), shared(4096, 64, 1000, 0) + 5);
    assert_eq!(shared(4, 32768, 1000, 5), 4);
}

#[test]
fn each_flushed_capacity_halves_what_a_bin_may_hold_down_to_a_minimum() {
    assert_eq!(allowed(1024, 0, 16), 1024);
    assert_eq!(allowed(1024, 1023, 16), 1024);
    assert_eq!(allowed(1024, 1024, 16), 512);
    assert_eq!(allowed(1024, 3 * 1024, 64), 128);
    assert_eq!(allowed(1024, u32::MAX, 16), ALLOWED_LEAST_BYTES / 16);
    assert_eq!(allowed(1024, u32::MAX, 32768), ALLOWED_LEAST);
    assert_eq!(allowed(4, u32::MAX, 16), 4, "never more than the capacity");
    assert_eq!(allowed(0, 5, 16), 0, "a capacity of nothing divides nothing");
}

#[test]
fn a_flush_keeps_half_until_a_whole_capacity_was_flushed() {
    assert_eq!(kept(100, 99, 80), 40);
    assert_eq!(kept(100, 100, 80), 0);
}

#[test]
fn a_bin_that_was_flushed_grows_by_that_up_to_its_most() {
    assert_eq!(learned(64, 100, 4096), 164);
    assert_eq!(learned(64, u32::MAX, 4096), 4096);
    assert_eq!(learned(64, 0, 32), 32, "the option was lowered meanwhile");
}

#[test]
fn bins_of_a_heap_grow_together_to_four_of_the_largest_or_to_what_all_start_with() {
    assert_eq!([0, 16_000, 16_384, 20_000].map(|together| growth(together, 4096)), [16_384, 384, 0, 0]);
    assert_eq!(growth(16_384, 16_384), 3 * 16_384);
    assert_eq!([1, 64, u32::MAX].map(|largest| growth(0, largest)), [16_384, 16_384, u32::MAX]);
}
