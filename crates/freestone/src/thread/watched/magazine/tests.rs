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
        assert_eq!(magazine.len(), n);
        let take = || {
            random = random.wrapping_mul(0x9E37_79B1).wrapping_add(7);
            magazine.take(0, random)
        };
        let taken: BTreeSet<_> = core::iter::from_fn(take).map(|start| start.addr()).collect();
        assert_eq!((taken.len(), magazine.len()), (n, 0));
    }
    assert!(magazine.any(0, 7).is_none());
}

#[test]
fn each_block_may_be_the_next_one_and_one_that_comes_takes_its_place() {
    let magazine = Magazine::new();
    assert!((1..=8).all(|at| magazine.put(0, block(at))));
    let chosen = (0..8u32).filter_map(|part| magazine.any(0, (part << 29) + 1)).map(|(_, start)| start.addr() / 16);
    assert!(chosen.eq((1..=8).rev()));
    let (place, start) = magazine.any(0, u32::MAX / 3).unwrap();
    place.set(block(9));
    assert_eq!(magazine.len(), 8);
    assert!(magazine.iter().all(|other| other != start) && magazine.iter().any(|other| other == block(9)));
}

#[test]
fn a_magazine_holds_no_more_bytes_than_its_bound() {
    for class in 0..N_CLASSES {
        let magazine = Magazine::new();
        let n = (1..100).take_while(|&at| magazine.put(class, block(at))).count();
        assert_eq!(n, capacity(class));
        assert_eq!(n, magazine.iter().count());
        assert!(n <= BLOCKS_MOST && n * block_bytes(class) <= BYTES_MOST && least(class) <= n / 4);
    }
    assert_eq!((capacity(0), capacity(N_CLASSES - 1)), (BLOCKS_MOST, 0));
}

#[test]
fn an_allocation_chooses_among_the_last_blocks_and_those_that_were_there_come_to_the_end() {
    for (class, &window) in WINDOW.iter().enumerate() {
        let (magazine, window) = (Magazine::new(), usize::from(window));
        let n = (1..=capacity(class)).filter(|&at| magazine.put(class, block(at))).count();
        let chosen = |random: u32| magazine.any(class, random).map(|(_, start)| start.addr() / 16);
        let all: BTreeSet<usize> = (0..64).filter_map(|part| chosen(part << 26)).collect();
        assert!(all.into_iter().eq(n.saturating_sub(window) + 1..=n), "{class}");
        magazine.turn_round();
        assert!(magazine.iter().map(|start| start.addr() / 16).eq((1..=n).rev()));
        let is_near = window * block_bytes(class) <= WINDOW_BYTES || window == WINDOW_LEAST;
        assert!(if is_short(class) { is_near && window >= WINDOW_LEAST } else { window == BLOCKS_MOST });
    }
}
