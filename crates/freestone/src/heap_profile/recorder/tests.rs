extern crate std;
use super::*;
use crate::heap_profile::tally::Weight;
use std::vec::Vec;

fn counts(profile: &HeapProfile) -> Vec<(Vec<usize>, StackCounts)> {
    let mut all = Vec::new();
    let visit = |addresses: &[AtomicUsize], counts| {
        all.push((addresses.iter().map(|address| address.load(Ordering::Relaxed)).collect(), counts));
        Ok::<_, ()>(())
    };
    profile.for_each(visit).expect("no error");
    all.sort_by_key(|(addresses, _): &(Vec<usize>, _)| addresses.clone());
    all
}

fn times(n: u64, weight: Weight) -> Weight {
    Weight { blocks: n * weight.blocks, bytes: n * weight.bytes }
}

#[test]
fn what_is_live_now_at_the_peak_and_since_the_start_is_told_apart() {
    let profile = HeapProfile::new();
    assert!(!profile.is_on() && !profile.has_room());
    assert!(profile.start(1000) && profile.is_on());
    let (one, two) = (weight_of(100, 1000), weight_of(5000, 1000));
    for n in 1..=4 {
        assert!(profile.record_large(n * 16, &[1], 100));
    }
    profile.forget(16);
    assert!(profile.record_large(800, &[2], 5000));
    profile.forget(32);
    profile.forget(800);
    profile.forget(800);
    profile.forget(12_345);
    let all = counts(&profile);
    let [(first, of_first), (second, of_second)] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&first[..], &second[..]), (&[1][..], &[2][..]));
    assert_eq!(*of_first, StackCounts { live: times(2, one), since_start: times(4, one), at_peak: times(3, one) });
    assert_eq!(*of_second, StackCounts { live: Weight::default(), since_start: two, at_peak: two });
}

#[test]
fn what_was_sampled_is_forgotten_after_the_end_too_and_a_new_session_counts_on() {
    let profile = HeapProfile::new();
    assert!(profile.start(64));
    assert!(profile.record_large(16, &[1], 64));
    profile.stop();
    assert!(!profile.is_on());
    profile.forget(16);
    let session = profile.session();
    assert!(profile.start(128) && profile.session() != session);
    assert!(profile.record_large(16, &[1], 64));
    let all = counts(&profile);
    assert_eq!(all[0].1.live, weight_of(64, 128));
    assert_eq!(all[0].1.since_start.bytes, weight_of(64, 64).bytes + weight_of(64, 128).bytes);
}

#[test]
fn what_was_live_at_a_peak_of_one_block_stays_known() {
    let profile = HeapProfile::new();
    assert!(profile.start(1000) && profile.record_large(16, &[1], 100));
    profile.forget(16);
    assert_eq!(counts(&profile)[0].1.at_peak, weight_of(100, 1000));
}

#[test]
fn distances_are_drawn_with_the_last_interval() {
    let profile = HeapProfile::new();
    assert!(profile.start(64) && profile.start(1 << 20));
    profile.stop();
    for random in [1 << 11, 1 << 40, u64::MAX] {
        assert_eq!(profile.bytes_until(random), bytes_until(1 << 20, random) as i64);
        assert_eq!(profile.allocations_until(48, random), allocations_until(1 << 20, 48, random));
    }
    assert!(profile.bytes_until(1 << 40) > 1 << 20);
}

#[test]
#[cfg_attr(miri, ignore = "takes 50,000 samples")]
fn samples_that_a_full_profile_does_not_take_are_counted() {
    let profile = HeapProfile::new();
    assert!(!profile.has_room() && profile.n_dropped() == 1);
    assert!(profile.start(1));
    let n = (1..).take_while(|&n| profile.record_large(16 * n, &[1], 16)).count();
    assert!(n > 50_000 && profile.n_dropped() == 2 && !profile.has_room());
    profile.count_dropped();
    assert_eq!(profile.n_dropped(), 4);
}

#[test]
fn frees_of_rust_are_noticed_if_that_was_expected_before_its_first_allocation() {
    let profile = HeapProfile::new();
    assert!(!profile.meet_rust() && !profile.notices_rust() && !profile.is_asked());
    profile.expect_rust();
    assert!(!profile.notices_rust() && profile.meet_rust() && profile.notices_rust());
    assert!(!profile.is_asked() && profile.start(64) && profile.is_asked());
    profile.stop();
    assert!(profile.is_asked(), "for frees, and for blocks that were chosen");
}

#[test]
fn the_heap_of_sampled_blocks_is_set_once() {
    let (profile, mut heaps) = (HeapProfile::new(), [0_u8; 2]);
    let [first, second] = heaps.each_mut().map(|heap| ptr::from_mut(heap).cast::<c_void>());
    assert!(profile.heap().is_null() && !profile.is_generation(7));
    profile.set_heap(first, 7);
    profile.set_heap(second, 8);
    assert!(profile.heap() == first && profile.is_generation(7) && !profile.is_generation(8));
}
