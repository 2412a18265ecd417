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
fn a_record_reads_back() {
    let record = Record { op: Op::Resize, align_log2: 5, slot: 0x0102_0304, size: 1 << 40, before: 77 };
    assert_eq!(Record::read(&record.to_bytes()), Some(record));
    assert_eq!(Record::read(&[0; RECORD_BYTES]), None);
}
