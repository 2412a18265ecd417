extern crate std;
use super::*;
use crate::thread::watched::seat::MULTIPLIER;
use std::collections::BTreeSet;

fn block(number: usize) -> *mut u8 {
    ptr::without_provenance_mut(number * 16)
}

#[test]
fn every_block_is_taken_once_whatever_the_random_numbers() {
    let magazine = Magazine::new();
    let mut random = 1u32;
    for n in 0..=BLOCKS_MOST {
        for at in 1..=n {
            assert!(magazine.put(0, block(at), random));
            random = random.wrapping_mul(0x9E37_79B1).wrapping_add(7);
        }
        assert_eq!(magazine.len(), n);
        let taken: BTreeSet<_> = core::iter::from_fn(|| magazine.take()).map(|start| start.addr()).collect();
        assert_eq!((taken.len(), magazine.len()), (n, 0));
    }
}

#[test]
fn each_block_may_be_the_next_one() {
    let mut next = BTreeSet::new();
    let mut random = 1_u64;
    for _ in 0..200 {
        let magazine = Magazine::new();
        for at in 1..=8 {
            random = random.wrapping_mul(MULTIPLIER).wrapping_add(1);
            assert!(magazine.put(0, block(at), (random >> 32) as u32));
        }
        next.extend(magazine.next().map(|start| start.addr() / 16));
    }
    assert!((1..=8).eq(next));
}

#[test]
fn the_next_block_stays_until_it_is_removed() {
    let magazine = Magazine::new();
    assert_eq!(magazine.next(), None);
    assert!(magazine.put(0, block(1), 7) && magazine.put(0, block(2), u32::MAX));
    let next = magazine.next();
    assert_eq!(next, magazine.next());
    magazine.remove_next();
    assert!(magazine.next().is_some_and(|other| Some(other) != next));
}

#[test]
fn a_magazine_holds_no_more_bytes_than_its_bound() {
    for class in 0..N_CLASSES {
        let magazine = Magazine::new();
        let n = (1..100).take_while(|&at| magazine.put(class, block(at), 0)).count();
        assert_eq!(n, capacity(class));
        assert_eq!(n, magazine.iter().count());
        assert!(n <= BLOCKS_MOST && n * block_bytes(class) <= BYTES_MOST);
    }
    assert_eq!((capacity(0), capacity(N_CLASSES - 1)), (BLOCKS_MOST, 0));
}
