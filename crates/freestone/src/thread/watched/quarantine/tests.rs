extern crate std;
use super::*;
use std::boxed::Box;

fn quarantine() -> Box<Quarantine> {
    Box::new(Quarantine {
        starts: [const { Cell::new(ptr::null_mut()) }; BLOCKS_MOST],
        classes: [const { Cell::new(0) }; BLOCKS_MOST],
        first: Cell::new(0),
        len: Cell::new(0),
        bytes: Cell::new(0),
        most: Cell::new(0),
        large_came: [const { AtomicU64::new(0) }; 2],
        large_left: [const { AtomicU64::new(0) }; 2],
    })
}

fn block(number: usize) -> *mut u8 {
    ptr::without_provenance_mut(number * 16)
}

#[test]
fn blocks_leave_in_the_order_in_which_they_came() {
    let waiting = quarantine();
    waiting.share(1);
    let class_of = |number: usize| (number % 3).checked_sub(1);
    let mut next = 1;
    for came in 1..5000 {
        while !waiting.has_room(64) {
            assert_eq!(waiting.pop(), Some((block(next), class_of(next))));
            waiting.discount(64);
            next += 1;
        }
        waiting.push(block(came), 64, class_of(came));
    }
    assert!(waiting.iter().eq((next..5000).map(block)));
}

#[test]
fn as_many_bytes_wait_as_the_bound_allows_and_fewer_where_there_are_many_heaps() {
    let waiting = quarantine();
    let room_for = |n_heaps| {
        while waiting.pop().is_some() {
            waiting.discount(10_000);
        }
        waiting.share(n_heaps);
        (1..)
            .take_while(|&at| {
                (waiting.has_room(10_000) || waiting.is_empty()) && {
                    waiting.push(block(at), 10_000, None);
                    true
                }
            })
            .count()
    };
    assert_eq!(room_for(1), BYTES_MOST / 10_000);
    assert_eq!(room_for(64), BYTES_OF_ALL / 64 / 10_000);
    assert_eq!(room_for(1 << 20), 1, "one block always finds room");
    assert!(Quarantine::takes(262_144) && !Quarantine::takes(LARGE_PART * BYTES_MOST));
}
