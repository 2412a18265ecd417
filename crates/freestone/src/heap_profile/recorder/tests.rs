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
