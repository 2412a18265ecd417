extern crate std;
use super::*;
use core::ptr;
use std::boxed::Box;
use std::collections::VecDeque;

mod borders;

fn quarantine() -> Box<Quarantine> {
    let quarantine = Box::new(Quarantine {
        clock: Cell::new(0),
        limit: Cell::new(0),
        most: Cell::new(0),
        bound: Cell::new(0),
        vacant: Cell::new(0),
        queues: [const { Queue { first: Cell::new(0), last: Cell::new(0) } }; N_QUEUES],
        next: [const { Cell::new(0) }; PLACES],
        places: core::array::from_fn(|_| Place {
            start: Cell::new(ptr::null_mut()),
            at: Cell::new(0),
            units: Cell::new(0),
        }),
        large_came: [const { AtomicU64::new(0) }; 2],
        large_left: [const { AtomicU64::new(0) }; 2],
    });
    quarantine.begin();
    quarantine
}

fn block(number: usize) -> *mut u8 {
    ptr::without_provenance_mut(number * 16)
}

/// Takes out what has waited, as a heap does in which too much waits.
fn sweep(waiting: &Quarantine) -> usize {
    (0..=OTHERS).map(|queue| core::iter::from_fn(|| waiting.pop(queue, false)).count()).sum()
}

const UNITS_MOST: u32 = (BYTES_MOST / UNIT_BYTES) as u32;

#[test]
fn blocks_leave_a_queue_in_the_order_in_which_they_came_and_not_before_they_have_waited() {
    let waiting = quarantine();
    waiting.share(1);
    let sizes = [40, 256, 1000, 6000, 70_000];
    let mut model: [VecDeque<(*mut u8, u32)>; 5] = Default::default();
    let (mut came, mut n_left) = (0, 0);
    for number in 1..20_000 {
        let which = number * number / 7 % sizes.len();
        model[which].push_back((block(number), came));
        came += units(sizes[which]);
        if waiting.push(block(number), sizes[which], which) {
            sweep(&waiting);
            model.iter_mut().for_each(|queue| queue.retain(|&(_, at)| came - at < UNITS_MOST));
            assert!(!waiting.is_over());
        }
        let which = number % sizes.len();
        let oldest = model[which].front().copied().filter(|&(_, at)| came - at >= UNITS_MOST);
        assert_eq!(waiting.pop(which, false), oldest.map(|(start, _)| start));
        if oldest.is_some() {
            model[which].pop_front();
            n_left += 1;
        }
    }
    assert!(n_left > 1000);
    assert!(waiting.iter().eq(model.iter().flatten().map(|&(start, _)| start)));
    for (which, queue) in model.iter().enumerate() {
        assert!(core::iter::from_fn(|| waiting.pop(which, true)).eq(queue.iter().map(|&(start, _)| start)));
    }
    assert!(waiting.iter().next().is_none());
    assert_eq!(waiting.room(), (UNITS_MOST + UNITS_MOST / 2) as i32);
}

#[test]
fn the_shortest_blocks_have_places_up_to_the_bound_whatever_came_before() {
    let waiting = quarantine();
    waiting.share(1);
    for round in 0..5 {
        let n = 1 + (1..).take_while(|&at| !waiting.push(block(at), 1, round)).count();
        let left = waiting.iter().map(|start| start.addr()).collect::<std::collections::BTreeSet<_>>();
        assert!(left.len() <= PLACES && left.len() == waiting.iter().count().min(n), "{round}");
        assert!(sweep(&waiting) >= UNITS_MOST as usize / 2 && !waiting.is_over());
        while waiting.pop(round, true).is_some() {}
    }
}

#[test]
fn half_as_much_again_as_must_wait_may_wait_and_less_where_there_are_many_heaps() {
    let room_for = |n_heaps| {
        let waiting = quarantine();
        waiting.share(n_heaps);
        1 + (1..).take_while(|&at| !waiting.push(block(at), 10_000, OTHERS)).count()
    };
    let blocks = |bytes: usize| (bytes / UNIT_BYTES).div_ceil(units(10_000) as usize);
    assert_eq!(room_for(1), blocks(BYTES_MOST + BYTES_MOST / 2));
    assert_eq!(room_for(8), blocks(BYTES_MOST + BYTES_OF_ALL / 32));
    assert_eq!(room_for(64), blocks(BYTES_OF_ALL / 64 + BYTES_OF_ALL / 256));
    assert_eq!(room_for(1 << 20), 1);
    assert!(Quarantine::takes(262_144) && !Quarantine::takes(LARGE_PART * BYTES_MOST));
}

#[test]
fn what_has_waited_leaves_room_when_the_share_becomes_smaller() {
    let waiting = quarantine();
    waiting.share(1);
    assert!((1..10).all(|at| !waiting.push(block(at), 10_000, OTHERS)));
    waiting.share(64);
    assert!(waiting.is_over());
    assert_eq!(sweep(&waiting), 7);
    assert!(!waiting.is_over());
}

#[test]
fn a_block_counts_as_its_bytes_in_units_rounded_up_and_a_large_one_as_a_part_of_them() {
    for (bytes, expected) in [(1, 1), (UNIT_BYTES - 1, 1), (UNIT_BYTES, 1), (UNIT_BYTES + 1, 2), (10 * UNIT_BYTES, 10)]
    {
        assert_eq!(units(bytes), expected, "{bytes}");
    }
    assert_eq!([1, LARGE_PART, 7 * LARGE_PART + 3].map(Quarantine::bytes_of_large), [1, 1, 7]);
    assert_eq!([LONGEST_BYTES, LONGEST_BYTES + 1].map(Quarantine::takes), [true, false]);
}
