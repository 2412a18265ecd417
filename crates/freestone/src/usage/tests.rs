use super::*;
use crate::config::key;

#[test]
fn the_peak_is_the_highest_published_sum() {
    let usage = Usage::new();
    for (change, peak) in [(300, 300), (-100, 300), (50, 300), (200, 450), (-450, 450), (10, 450)] {
        usage.publish_live(change);
        assert_eq!(usage.peak_live_bytes(), peak, "after {change}");
    }
}

#[test]
fn less_is_live_than_at_the_peak_by_what_was_published_and_by_what_each_heap_may_not_have() {
    let usage = Usage::new();
    usage.publish_live(3000);
    usage.publish_live(-1000);
    assert_eq!(usage.below_peak(), 1000);
    usage.set_n_heaps(3, 1);
    assert_eq!(usage.below_peak(), 1000 + 3 * UNPUBLISHED_BYTES);
}

#[test]
fn a_negative_sum_neither_raises_the_peak_nor_loses_later_changes() {
    let usage = Usage::new();
    usage.publish_live(-500);
    assert_eq!(usage.peak_live_bytes(), 0);
    usage.publish_live(700);
    assert_eq!(usage.peak_live_bytes(), 200);
}

#[test]
fn free_memory_in_spans_exceeds_the_bound_above_the_configured_value() {
    let (usage, settings) = (Usage::new(), Settings::new());
    settings.set(key::DIRTY_MAX, b"1000").unwrap();
    usage.add_free_in_spans(1000);
    assert!(!usage.exceeds_bound_in_spans(&settings, false));
    usage.add_free_in_spans(1);
    assert!(usage.exceeds_bound_in_spans(&settings, false));
    usage.add_free_in_spans(-1);
    assert!(!usage.exceeds_bound_in_spans(&settings, false));
}

#[test]
fn the_bound_on_free_memory_in_spans_grows_with_what_is_live() {
    let (usage, settings) = (Usage::new(), Settings::new());
    settings.set(key::DIRTY_MAX, b"1000").unwrap();
    let live = 1 << 30;
    usage.publish_live(live);
    let bound = settings.dirty_bound_bytes(live as u64) as i64;
    assert!(bound > 1000);
    usage.add_free_in_spans(bound);
    assert!(!usage.exceeds_bound_in_spans(&settings, false));
    usage.add_free_in_spans(1);
    assert!(usage.exceeds_bound_in_spans(&settings, false));
}

#[test]
fn a_negative_sum_of_free_memory_does_not_exceed_the_bound() {
    let (usage, settings) = (Usage::new(), Settings::new());
    settings.set(key::DIRTY_MAX, b"0").unwrap();
    usage.add_free_in_spans(-1);
    assert!(!usage.exceeds_bound_in_spans(&settings, false));
}

#[test]
fn free_memory_in_spans_that_exceeded_the_bound_exceeds_it_down_to_half_of_it() {
    let (usage, settings) = (Usage::new(), Settings::new());
    settings.set(key::DIRTY_MAX, b"1000").unwrap();
    for (free, expected) in [(501, true), (500, false)] {
        usage.add_free_in_spans(free - usage.free_in_spans());
        assert!(!usage.exceeds_bound_in_spans(&settings, false));
        assert_eq!(usage.exceeds_bound_in_spans(&settings, true), expected, "{free}");
    }
}

#[test]
fn blocks_that_are_left_out_are_counted_by_class() {
    let usage = Usage::new();
    usage.count_left_out(3, 7);
    usage.count_left_out(3, -1);
    usage.count_left_out(N_CLASSES - 1, -1);
    assert_eq!([2, 3, 4, N_CLASSES - 1].map(|class| usage.left_out(class)), [0, 6, 0, -1]);
}

#[test]
fn the_number_of_heaps_is_the_last_one_set() {
    let usage = Usage::new();
    assert_eq!(usage.n_heaps(), 0);
    usage.set_n_heaps(7, 0);
    usage.set_n_heaps(5, 2);
    assert_eq!((usage.n_heaps(), usage.n_thread_heaps()), (5, 3));
}
