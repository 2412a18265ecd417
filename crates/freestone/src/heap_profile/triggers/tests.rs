use super::*;

fn weight(bytes: u64) -> Weight {
    Weight { blocks: 0, bytes: Weight::parts_of(bytes) }
}

#[test]
fn a_profile_is_due_once_each_time_so_many_bytes_were_allocated() {
    let triggers = Triggers::new();
    triggers.note_allocated(weight(5000));
    assert!(!triggers.is_set() && !triggers.take());
    triggers.set(1000, 0, 0);
    assert!(triggers.is_set());
    let mut is_due = |bytes| {
        triggers.note_allocated(weight(bytes));
        triggers.take()
    };
    assert_eq!([999, 1, 0, 999, 1].map(&mut is_due), [false, true, false, false, true]);
    assert_eq!([10_000, 999, 1].map(&mut is_due), [true, false, true], "one large block makes one profile due");
}

#[test]
fn a_profile_is_due_when_more_is_live_than_the_last_time_and_not_when_as_much_is_again() {
    let triggers = Triggers::new();
    triggers.set(0, 100, Weight::parts_of(50));
    let mut is_due = |live| {
        triggers.note_live(Weight::parts_of(live));
        triggers.take()
    };
    assert_eq!([149, 150, 20, 150, 249, 250].map(&mut is_due), [false, true, false, false, false, true]);
    triggers.set(0, 0, 0);
    triggers.note_live(u64::MAX);
    assert!(!triggers.is_set() && !triggers.take());
}
