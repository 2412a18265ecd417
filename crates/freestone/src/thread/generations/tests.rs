use super::*;
use std::collections::BTreeSet;

/// Three numbers before the first half ends.
fn near_the_end() -> Generations {
    let next = Generation::numbered(Generation::FIRST_EXPLICIT.number() - 3);
    assert_eq!(next.next().next().next(), Generation::FIRST);
    Generations { next, ..Generations::from(Generation::FIRST) }
}

#[test]
fn no_number_is_given_out_twice_before_all_were_given_out_once() {
    let mut generations = Generations::from(Generation::FIRST);
    let drawn: BTreeSet<u32> = (0..1000).map(|_| generations.draw(|_| true).tag()).collect();
    assert_eq!(drawn.len(), 1000, "no heap has a number that was never given out");
}

#[test]
fn once_all_numbers_were_given_out_those_in_use_are_skipped() {
    let mut generations = near_the_end();
    (0..3).for_each(|_| _ = generations.draw(|_| true));
    let (first, second) = (Generation::FIRST, Generation::FIRST.next());
    let drawn = generations.draw(|generation| generation == first || generation == second);
    assert_eq!(drawn, second.next());
}

#[test]
fn each_half_starts_again_at_its_own_first() {
    let mut generations = near_the_end();
    (0..3).for_each(|_| assert!(!generations.draw(|_| false).is_explicit()));
    assert_eq!(generations.draw(|_| false), Generation::FIRST);
    assert!(Generations::from(Generation::FIRST_EXPLICIT).draw(|_| false).is_explicit());
}
