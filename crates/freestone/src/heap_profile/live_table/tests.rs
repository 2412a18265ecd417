extern crate std;
use super::*;
use std::vec::Vec;

const NOTHING: Sample = Sample { stack: 0, weight: Weight { blocks: 0, bytes: 0 } };

fn empty() -> &'static LiveTable {
    let start = freestone_os::map_for_good(size_of::<LiveTable>()).expect("memory");
    crate::testing::zeroed(start)
}

#[test]
fn a_sample_is_found_until_it_is_removed() {
    let table = empty();
    let sample = |n: usize| Sample { stack: n as StackIndex, weight: Weight { blocks: n as u64, bytes: 2 * n as u64 } };
    // Fifty at a time have the same entry: they differ in bits that the hash leaves out.
    let address = |n: usize| 16 * (1 + n / 50) + ((n % 50) << (32 + N_SAMPLES.ilog2()));
    let addresses: Vec<usize> = (0..3000).map(address).collect();
    let entry = |n: usize| table.from(addresses[n]).next().map(core::ptr::from_ref);
    assert!(entry(0) == entry(49) && entry(0) != entry(50));
    for (n, &address) in addresses.iter().enumerate() {
        assert!(table.insert(address, sample(n)));
    }
    assert_eq!(table.len(), addresses.len());
    for (n, &address) in addresses.iter().enumerate().filter(|(n, _)| n % 2 == 0) {
        assert_eq!(table.remove(address), Some(sample(n)));
        assert_eq!(table.remove(address), None);
    }
    assert!(table.insert(addresses[0], sample(7)));
    for (n, &address) in addresses.iter().enumerate().filter(|(n, _)| n % 2 == 1) {
        assert_eq!(table.remove(address), Some(sample(n)));
    }
    assert_eq!((table.remove(addresses[0]), table.len()), (Some(sample(7)), 0));
}

#[test]
fn a_full_table_takes_no_sample_until_one_is_removed() {
    let table = empty();
    // Miri takes ten minutes for all that there is room for: then some that are not there count as if they were.
    let n_others = if cfg!(miri) { SAMPLES_MOST - 1000 } else { 0 };
    table.len.store(n_others, Ordering::Relaxed);
    let n = (1..).take_while(|&n| table.insert(16 * n, NOTHING)).count();
    assert_eq!(n_others + n, SAMPLES_MOST);
    assert!(table.remove(16).is_some());
    assert!(table.insert(16 * (n + 7), NOTHING));
}

#[test]
fn entries_are_used_again_and_again() {
    let table = empty();
    for n in 1..=if cfg!(miri) { 2000 } else { 4 * N_SAMPLES } {
        assert!(table.insert(16 * n, NOTHING));
        assert!(table.remove(16 * n).is_some());
    }
    assert_eq!(table.len(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "takes 400,000 samples")]
fn an_address_that_is_not_there_is_looked_for_in_few_entries_however_many_samples_came_and_went() {
    let table = empty();
    for round in 0..4 {
        let address = |n: usize| (1 << 20) * (1 + round) + 48 * n;
        (0..SAMPLES_MOST).for_each(|n| assert!(table.insert(address(n), NOTHING)));
        assert!((0..SAMPLES_MOST).all(|n| table.remove(address(n)) == Some(NOTHING)));
    }
    let n_looked_at = table.within_reach(16).count();
    assert!(table.remove(16).is_none() && n_looked_at < 1000, "{n_looked_at}");
}
