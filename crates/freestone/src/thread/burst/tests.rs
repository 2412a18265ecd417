use super::*;

const CLASS: usize = 3;

/// A heap of which much was flushed.
fn burst_of_much() -> BurstPolicy {
    let burst = BurstPolicy::new();
    burst.count_flushed(MUCH_BYTES);
    burst
}

/// A class of which so many blocks are live after so many were flushed.
fn course(live: i64, flushed: u32) -> Course {
    Course { live, flushed }
}

#[test]
fn a_bin_that_was_flushed_gets_room_until_the_last_live_block() {
    let burst = burst_of_much();
    assert_eq!(burst.await_few(CLASS, course(10, 5), 50), Some(9));
    assert!(burst.awaits_few(CLASS) && !burst.awaits_few(CLASS + 1));
}

#[test]
fn a_bin_whose_room_ends_before_the_last_block_keeps_its_room() {
    let burst = BurstPolicy::new();
    assert_eq!(burst.await_few(CLASS, course(10, 5), 8), None);
    assert!(!burst.awaits_few(CLASS));
    assert_eq!(burst.await_few(CLASS, course(10, 5), 9), Some(9), "the slow path would come with that very free");
}

#[test]
fn a_class_of_which_many_were_flushed_waits_until_a_sixteenth_of_them_is_live_then_for_a_quarter_of_those() {
    let burst = burst_of_much();
    let (mut live, mut waits) = (1000, Vec::new());
    while let Some(room) = burst.await_few(CLASS, course(live, 1600), 5000) {
        live -= room + 1;
        assert!(burst.was_awaited(CLASS, course(live, 1600)));
        waits.push(live);
    }
    assert_eq!(waits, [100, 25, 6, 1, 0]);
}

#[test]
fn no_block_is_waited_for_if_none_is_live() {
    let burst = BurstPolicy::new();
    // Less than none: other threads' blocks were freed into the bin.
    for live in [0, -5] {
        for flushed in [0, 1600] {
            assert_eq!(burst.await_few(CLASS, course(live, flushed), 50), None);
        }
    }
}

#[test]
fn the_free_of_the_last_block_ends_the_wait_and_an_earlier_one_too() {
    let burst = burst_of_much();
    assert!(!burst.was_awaited(CLASS, course(0, 0)), "no block was waited for");
    burst.await_few(CLASS, course(1, 0), 50);
    assert!(burst.was_awaited(CLASS, course(0, 0)));
    assert!(!burst.was_awaited(CLASS, course(0, 0)), "once");
    burst.await_few(CLASS, course(2, 0), 50);
    assert!(!burst.was_awaited(CLASS, course(1, 0)), "the thread allocated one more meanwhile");
    assert!(!burst.awaits_few(CLASS), "the slow path has granted room anew");
}

#[test]
fn a_burst_is_about_to_end_if_most_of_it_was_flushed_and_more_than_a_few_are_live() {
    for (live, flushed, expected) in [(500, 1600, true), (100, 1600, false), (1700, 1600, false), (5, 0, false)] {
        assert_eq!(course(live, flushed).nears_end(), expected, "{live} of {flushed}");
    }
}

#[test]
fn a_burst_of_the_heap_ends_again_whenever_three_in_four_of_the_live_blocks_are_freed() {
    let burst = BurstPolicy::new();
    assert_eq!(burst.end(1000), Some(Ended::Nearly));
    let ends: Vec<_> = (0..1000).rev().filter(|&n_live| burst.end(n_live).is_some()).collect();
    assert_eq!(ends, [249, 62, 15, 3, 0]);
    burst.begin(0);
    assert_eq!(burst.end(0), Some(Ended::Later), "nothing is left to wait for");
    assert_eq!(burst.end(0), None, "all was released");
}

#[test]
fn bins_are_on_watch_once_much_more_was_flushed_than_taken_out_of_spans_again() {
    let burst = BurstPolicy::new();
    for _ in 0..100 {
        burst.count_flushed(MUCH_BYTES - 1);
        assert!(!burst.is_on_watch(), "a thread that replaces blocks");
        burst.begin(2 * MUCH_BYTES);
    }
    burst.count_flushed(MUCH_BYTES);
    assert!(burst.is_on_watch());
    burst.begin(1);
    assert!(!burst.is_on_watch());
}
