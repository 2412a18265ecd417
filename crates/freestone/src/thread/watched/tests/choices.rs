//! The random numbers that choose among free blocks.
use super::*;
use crate::thread::watched::seat::WatchedHeap;
use freestone_base::units::PAGE_BYTES;

#[test]
fn what_chooses_among_free_blocks_is_random_in_every_bit() {
    let world = watched();
    let (heap, of_another) = (world.heap(), world.heap());
    let (Some(watch), Some(of_another)) = (heap.watch(), of_another.watch()) else { panic!("both are watched") };
    for draw in [|watch: &WatchedHeap| watch.random(), |watch: &WatchedHeap| u64::from(watch.choice())] {
        let drawn: Vec<u64> = (0..1000).map(|_| draw(watch)).collect();
        let n_bits = 64 - drawn.iter().fold(0, |all, number| all | number).leading_zeros();
        assert!(n_bits == 32 || n_bits == 64);
        for bit in (0..n_bits).step_by(if cfg!(miri) { 9 } else { 1 }) {
            let n_changes = drawn.windows(2).filter(|pair| (pair[0] ^ pair[1]) >> bit & 1 == 1).count();
            assert!((400..600).contains(&n_changes), "bit {bit}: {n_changes}");
        }
        assert_ne!(draw(watch), draw(of_another));
    }
}

#[test]
fn short_blocks_that_are_allocated_one_after_the_other_are_near_each_other_but_not_in_order() {
    let world = watched();
    let heap = world.heap();
    // From random places of a word they would be 850, 1350, 1880, 1790 and 2530 bytes apart.
    let (n_sizes, n) = if cfg!(miri) { (2, 300) } else { (5, 2000) };
    for (size, most) in [(20, 500), (40, 1000), (60, 1200), (100, 1200), (200, 1900)].into_iter().take(n_sizes) {
        let blocks: Vec<*mut u8> = (0..n).map(|_| allocate(heap, size)).collect();
        let bytes = block_bytes(class_of((size + TRAILER_BYTES).max(LEAST_BLOCK_BYTES)));
        let step = |pair: &[*mut u8]| pair[1].addr().wrapping_sub(pair[0].addr()) as isize;
        let steps: Vec<isize> = blocks.windows(2).map(step).collect();
        // The next span may be anywhere.
        let near = || steps.iter().map(|step| step.unsigned_abs()).filter(|&step| step < 2 * PAGE_BYTES);
        let mean = near().sum::<usize>() / near().count();
        assert!(mean < most, "{size}: {mean} bytes from one block to the next, on average");
        let n_next = steps.iter().filter(|&&step| step == bytes as isize).count();
        assert!(n_next < blocks.len() / 2, "{size}: {n_next} blocks are the right neighbour of the one before");
        blocks.into_iter().for_each(|block| free(heap, block));
    }
}
