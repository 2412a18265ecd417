extern crate std;
use super::*;
use std::collections::BTreeSet;

fn block(number: usize) -> *mut u8 {
    ptr::without_provenance_mut(number * 16)
}

#[test]
fn every_block_is_taken_once_whatever_the_random_numbers() {
    let magazine = Magazine::new();
    let mut random = 1u32;
    for n in 0..=BLOCKS_MOST {
        assert!((1..=n).all(|at| magazine.put(0, block(at))));
        let mut taken = BTreeSet::new();
        while let Some(start) = magazine.take(random) {
            assert!(taken.insert(start.addr()));
            random = random.wrapping_mul(0x9E37_79B1).wrapping_add(7);
        }
        assert_eq!(taken.len(), n);
    }
}

#[test]
fn each_block_may_be_the_next_one() {
    let first = |random| {
        let magazine = Magazine::new();
        assert!((1..=8).all(|at| magazine.put(0, block(at))));
        magazine.take(random).map(|start| start.addr() / 16)
    };
    assert!((1..=8).eq((0..8).map(|at| first((at << 29) + 5).expect("it has blocks"))));
}

#[test]
fn a_magazine_holds_no_more_bytes_than_its_bound() {
    for class in 0..N_CLASSES {
        let magazine = Magazine::new();
        let n = (1..100).take_while(|&at| magazine.put(class, block(at))).count();
        assert_eq!(n, capacity(class));
        assert_eq!(n, magazine.iter().count());
        assert!(n <= BLOCKS_MOST && n * block_bytes(class) <= BYTES_MOST);
    }
    assert_eq!((capacity(0), capacity(N_CLASSES - 1)), (BLOCKS_MOST, 0));
}
