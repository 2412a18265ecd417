use super::*;

const DECAY_MS: u32 = 100;

#[test]
fn blocks_wait_long_once_their_thread_has_taken_none_for_the_decay_time() {
    let note = IdleNote::new();
    let look = |newest, now_ms| note.look(newest, now_ms, DECAY_MS);
    assert_eq!(look(0, 500), Waiting::None);
    assert_eq!(look(16, 1000), Waiting::NotLong, "since then");
    assert_eq!(look(32, 1099), Waiting::NotLong);
    assert_eq!(look(32, 1100), Waiting::Long, "also if blocks have come meanwhile");
    note.note_taken();
    assert_eq!(look(48, 1200), Waiting::NotLong, "the thread is not idle");
    assert_eq!(look(0, 1250), Waiting::None);
    assert_eq!(look(48, 1300), Waiting::NotLong, "since the inbox was last empty");
    assert_eq!(look(48, 1400), Waiting::Long);
}

#[test]
fn what_was_left_is_looked_through_again_only_when_more_has_come() {
    let note = IdleNote::new();
    let look = |newest, now_ms| note.look(newest, now_ms, DECAY_MS);
    assert_eq!((look(16, 0), look(16, 100)), (Waiting::NotLong, Waiting::Long));
    note.note_looked_through(16, 100, 0);
    assert_eq!((look(16, 150), look(16, 900)), (Waiting::None, Waiting::None));
    assert_eq!((look(32, 1000), look(32, 1099), look(32, 1100)), (Waiting::NotLong, Waiting::NotLong, Waiting::Long));
    note.note_looked_through(32, 1100, 0);
    note.note_taken();
    assert_eq!((look(32, 1600), look(32, 1700)), (Waiting::NotLong, Waiting::Long), "the block has come again");
}

#[test]
fn an_inbox_is_left_alone_for_twenty_times_as_long_as_it_took_to_look_through_it() {
    let note = IdleNote::new();
    let look = |now_ms: u32| note.look(16, now_ms, DECAY_MS);
    // The kernel's clock may have run for long.
    let began = u32::MAX - 1000;
    assert_eq!((look(began), look(began + 100)), (Waiting::NotLong, Waiting::Long));
    note.note_looked_through(0, began + 149, 49);
    assert_eq!((look(began + 200), look(began + 1000)), (Waiting::NotLong, Waiting::NotLong));
    assert_eq!((look(147), look(148)), (Waiting::NotLong, Waiting::Long), "twenty times 50 ms later");
    note.note_looked_through(0, 200, u32::MAX);
    assert_eq!((look(300), look(600_199), look(600_200)), (Waiting::NotLong, Waiting::NotLong, Waiting::Long));
}

#[test]
fn without_a_decay_time_blocks_have_waited_long_at_once_and_clocks_may_wrap() {
    let note = IdleNote::new();
    assert_eq!(note.look(16, 7, 0), Waiting::Long);
    let note = IdleNote::new();
    assert_eq!(note.look(16, u32::MAX - 10, DECAY_MS), Waiting::NotLong);
    assert_eq!(note.look(16, 89, DECAY_MS), Waiting::Long, "100 ms later");
}
