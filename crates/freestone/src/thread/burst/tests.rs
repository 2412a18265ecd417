use super::*;

const CLASS: usize = 3;

#[test]
fn a_bin_that_was_flushed_gets_room_until_the_last_live_block() {
    let burst = BurstPolicy::new();
    assert!(!burst.is_on_watch(false) && burst.is_on_watch(true));
    assert_eq!(burst.await_last(CLASS, 10, 50), Some(9));
    assert!(burst.awaits_last(CLASS) && !burst.awaits_last(CLASS + 1));
}

#[test]
fn a_bin_whose_room_ends_before_the_last_block_keeps_its_room() {
    let burst = BurstPolicy::new();
    assert_eq!(burst.await_last(CLASS, 10, 8), None);
    assert!(!burst.awaits_last(CLASS));
    assert_eq!(burst.await_last(CLASS, 10, 9), Some(9), "the slow path would come with that very free");
}

#[test]
fn no_block_is_waited_for_if_none_is_live() {
    let burst = BurstPolicy::new();
    // Less than none: other threads' blocks were freed into the bin.
    for live in [0, -5] {
        assert_eq!(burst.await_last(CLASS, live, 50), None);
    }
}

#[test]
fn the_free_of_the_last_block_ends_the_wait_and_an_earlier_one_too() {
    let burst = BurstPolicy::new();
    assert!(!burst.was_last(CLASS, 0), "no block was waited for");
    burst.await_last(CLASS, 1, 50);
    assert!(burst.was_last(CLASS, 0));
    assert!(!burst.was_last(CLASS, 0), "once");
    burst.await_last(CLASS, 2, 50);
    assert!(!burst.was_last(CLASS, 1), "the thread allocated one more meanwhile");
    assert!(!burst.awaits_last(CLASS), "the slow path has granted room anew");
}

#[test]
fn after_a_burst_every_bin_is_on_watch_until_the_thread_needs_more_memory() {
    let burst = BurstPolicy::new();
    burst.end();
    assert!(burst.is_on_watch(false));
    burst.begin();
    assert!(!burst.is_on_watch(false));
}
