use super::*;
use crate::trace::recording::tests::small;
use freestone_trace::Kind;

fn allocate(block: u64) -> What {
    What::Allocate { kind: Kind::C, size: 8, align_log2: 0, block }
}

fn event(thread: u32, sequence: u64, ticket: Option<u64>, what: What) -> Event {
    Event { thread, time_us: 0, sequence, ticket, what }
}

fn timeline(streams: Vec<Vec<Event>>) -> Timeline {
    Timeline::of(&Recording { streams, ..small() })
}

/// Threads and calls, with blocks as numbers.
fn calls(timeline: &Timeline) -> Vec<(u32, char, Block)> {
    let short = |step: &Step| match step.call {
        Call::Begin => (step.thread, 'b', 0),
        Call::End => (step.thread, 'e', 0),
        Call::Allocate { block, .. } => (step.thread, 'a', block),
        Call::Resize { block, .. } => (step.thread, 'r', block),
        Call::Free { block } => (step.thread, 'f', block),
    };
    timeline.steps.iter().map(short).collect()
}

#[test]
fn a_block_is_allocated_before_another_thread_frees_it_and_is_used_again_after_that() {
    let one = vec![event(0, 0, None, allocate(0x10)), event(0, 1, None, allocate(0x10))];
    let other = vec![event(1, 0, Some(0), What::Free { block: 0x10 })];
    for streams in [vec![one.clone(), other.clone()], vec![other, one]] {
        let timeline = timeline(streams);
        assert_eq!(calls(&timeline), [(0, 'a', 0), (1, 'f', 0), (0, 'a', 1)]);
        assert_eq!((timeline.n_unknown, timeline.n_implied), (0, 0));
    }
}

#[test]
fn events_of_one_number_are_put_into_an_order_that_is_possible() {
    // Another thread's free in its own bin takes no number; it can only come after the allocation.
    let one = vec![event(0, 5, None, What::Free { block: 0x20 })];
    let other = vec![event(1, 5, None, allocate(0x20))];
    assert_eq!(calls(&timeline(vec![one, other])), [(1, 'a', 0), (0, 'f', 0)]);
}

#[test]
fn a_resized_block_leaves_its_address_when_it_takes_its_number() {
    let resize = What::Resize { from: 0x10, size: 80, block: 0x30 };
    let one = vec![event(0, 0, None, allocate(0x10)), event(0, 2, Some(0), resize)];
    let other = vec![event(1, 1, None, allocate(0x10)), event(1, 1, Some(1), What::Free { block: 0x10 })];
    let timeline = timeline(vec![one, other]);
    assert_eq!(calls(&timeline), [(0, 'a', 0), (1, 'a', 1), (1, 'f', 1), (0, 'r', 2)]);
    assert_eq!(timeline.steps[3].call, Call::Resize { from: 0, block: 2, size: 80, align_log2: 0 });
}

#[test]
fn what_was_not_recorded_is_counted() {
    let events = vec![
        event(0, 0, None, What::Free { block: 0x70 }),
        event(0, 0, None, allocate(0)),
        event(0, 0, None, allocate(0x10)),
        event(0, 0, None, allocate(0x10)),
    ];
    let timeline = timeline(vec![events]);
    assert_eq!(calls(&timeline), [(0, 'a', 0), (0, 'f', 0), (0, 'a', 1)]);
    assert_eq!((timeline.n_unknown, timeline.n_failed, timeline.n_implied), (1, 1, 1));
}
