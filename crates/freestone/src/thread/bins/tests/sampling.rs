//! What the bins know of sampling, number by number.
use super::*;
use crate::thread::countdown::units_until;

/// Bins whose countdown ends with the `left`-th allocation.
fn bins_with(left: u64) -> Bins {
    let bins = Bins::empty();
    let (mean, random) = (1 << 20, 1 << 63);
    let drawn = units_until(mean, random);
    assert!(drawn > left);
    assert_eq!(bins.countdown().pass(drawn - left, mean, || random), 0);
    bins
}

fn allocate(bins: &Bins, n: usize) {
    (0..n).for_each(|_| bins.count_single_alloc(CLASS));
}

#[test]
fn what_was_handed_out_is_counted_down_unless_that_ends_the_countdown() {
    for (n, counts) in [(0, true), (1, true), (9, true), (10, false), (11, false)] {
        let bins = bins_with(10);
        allocate(&bins, n);
        assert_eq!(bins.counts_down(CLASS), counts, "{n}");
        assert_eq!(bins.uncounted(CLASS), if counts { 0 } else { n as u64 }, "{n}");
        // So many units are left, and no more.
        let left = if counts { 10 - n as u64 } else { 10 };
        assert!(!bins.countdown().skip(left) && bins.countdown().skip(left - 1), "{n}");
    }
}

#[test]
fn nothing_is_counted_down_while_an_allocation_is_due_or_blocks_are_aside() {
    let (bins, blocks) = (bins_with(10), Blocks::new(1));
    allocate(&bins, 2);
    bins.add_due(CLASS, 1);
    assert!(!bins.counts_down(CLASS) && bins.uncounted(CLASS) == 2);
    assert!(bins.take_due(CLASS));
    bins.put(blocks.free_block(0));
    bins.set_aside(CLASS);
    assert!(bins.has_aside(CLASS) && !bins.counts_down(CLASS) && bins.uncounted(CLASS) == 2);
    assert_eq!(bins.put_back(CLASS, || View::EMPTY), Ok(true));
    assert!(bins.counts_down(CLASS) && bins.uncounted(CLASS) == 0);
}

#[test]
fn what_is_told_ahead_is_not_told_again() {
    let bins = bins_with(10);
    allocate(&bins, 5);
    assert_eq!((bins.uncounted(CLASS), bins.take_uncounted(CLASS, 2)), (5, 5));
    for uncounted in [0, 0, 0, 1, 2] {
        assert_eq!(bins.uncounted(CLASS), uncounted);
        allocate(&bins, 1);
    }
    assert_eq!((bins.take_uncounted(CLASS, 0), bins.uncounted(CLASS)), (3, 0));
}

#[test]
fn as_many_allocations_are_due_as_were_noted() {
    let bins = Bins::empty();
    assert!(!bins.is_due(CLASS) && !bins.take_due(CLASS) && !bins.is_due(CLASS));
    bins.add_due(CLASS, 2);
    bins.add_due(CLASS, 1);
    assert!(bins.is_due(CLASS) && !bins.is_due(CLASS + 1));
    assert_eq!([(); 4].map(|()| bins.take_due(CLASS)), [true, true, true, false]);
    bins.add_due(CLASS, u32::MAX);
    bins.add_due(CLASS, 1);
    assert!(bins.is_due(CLASS), "it does not wrap around");
}
