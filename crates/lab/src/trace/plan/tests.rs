use super::*;
use crate::trace::timeline::Step;

fn timeline() -> Timeline {
    let step = |thread, call| Step { thread, time_us: 0, call };
    let allocate = |block| Call::Allocate { block, size: 8, align_log2: 0, is_zeroed: false };
    let steps = vec![
        step(7, allocate(0)),
        step(7, allocate(1)),
        step(9, Call::Begin),
        step(9, Call::Free { block: 0 }),
        step(9, Call::Free { block: 1 }),
        step(7, allocate(2)),
    ];
    Timeline { steps, n_blocks: 3, ..Timeline::default() }
}

fn ops(records: &[Record]) -> Vec<(Op, u32, u64)> {
    records.iter().map(|record| (record.op, record.slot, record.size)).collect()
}

#[test]
fn in_turns_every_change_of_thread_waits_for_the_one_before() {
    let plan = Plan::of(&timeline(), Order::Turns);
    let first = [(Op::Allocate, 0, 8), (Op::Allocate, 1, 8), (Op::Start, 1, 0), (Op::Wait, 1, 3), (Op::Allocate, 2, 8)];
    assert_eq!(ops(&plan.threads[0]), first);
    assert_eq!(ops(&plan.threads[1]), [(Op::Wait, 0, 3), (Op::Free, 0, 0), (Op::Free, 1, 0)]);
    assert_eq!((plan.n_slots, plan.operations), (3, 5));
}

#[test]
fn in_free_order_a_thread_waits_only_for_blocks_and_once_for_what_it_knows() {
    let plan = Plan::of(&timeline(), Order::Free);
    assert_eq!(ops(&plan.threads[0]).len(), 4, "nothing is waited for");
    let second = [(Op::Wait, 0, 1), (Op::Free, 0, 0), (Op::Wait, 0, 2), (Op::Free, 1, 0)];
    assert_eq!(ops(&plan.threads[1]), second);
}

#[test]
fn zeroed_and_resized_blocks_keep_the_alignment_that_was_asked_for() {
    use freestone_trace::{Event, Kind, What};
    let event = |what| Event { thread: 0, time_us: 0, sequence: 1, ticket: None, what };
    let allocate = |kind, block| event(What::Allocate { kind, size: 100, align_log2: 6, block });
    let resize = |from, block| event(What::Resize { from, size: 200, block });
    let mut recording = crate::trace::recording::tests::small();
    recording.streams = vec![vec![
        allocate(Kind::RustZeroed, 0x100),
        resize(0x100, 0x200),
        resize(0x200, 0x400),
        allocate(Kind::C, 0x800),
        resize(0x800, 0x900),
    ]];
    let plan = Plan::of(&Timeline::of(&recording), Order::Turns);
    let aligned: Vec<_> = plan.threads[0].iter().map(|record| (record.op, record.align_log2)).collect();
    let of_rust = [(Op::AllocateZeroed, 6), (Op::Resize, 6), (Op::Resize, 6)];
    assert_eq!((&aligned[..3], &aligned[3..]), (&of_rust[..], &[(Op::Allocate, 6), (Op::Resize, 0)][..]));
}

#[test]
fn a_record_reads_back() {
    let record = Record { op: Op::Resize, align_log2: 5, slot: 0x0102_0304, size: 1 << 40, before: 77 };
    assert_eq!(Record::read(&record.to_bytes()), Some(record));
    assert_eq!(Record::read(&[0; RECORD_BYTES]), None);
}
