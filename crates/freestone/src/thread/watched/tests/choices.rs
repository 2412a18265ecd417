//! The random numbers that choose among free blocks.
use super::*;
use crate::thread::watched::seat::WatchedHeap;

#[test]
fn what_chooses_among_free_blocks_is_random_in_every_bit() {
    let world = watched();
    let (heap, of_another) = (world.heap(), world.heap());
    let (Some(watch), Some(of_another)) = (heap.watch(), of_another.watch()) else { panic!("both are watched") };
    for draw in [|watch: &WatchedHeap| watch.random(), |watch: &WatchedHeap| u64::from(watch.choice())] {
        let drawn: Vec<u64> = (0..1000).map(|_| draw(watch)).collect();
        let n_bits = 64 - drawn.iter().fold(0, |all, number| all | number).leading_zeros();
        assert!(n_bits == 32 || n_bits == 64);
        for bit in 0..n_bits {
            let n_changes = drawn.windows(2).filter(|pair| (pair[0] ^ pair[1]) >> bit & 1 == 1).count();
            assert!((400..600).contains(&n_changes), "bit {bit}: {n_changes}");
        }
        assert_ne!(draw(watch), draw(of_another));
    }
}
