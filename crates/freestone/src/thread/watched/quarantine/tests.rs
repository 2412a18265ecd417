extern crate std;
use super::*;
use crate::size_class::block_bytes;
use core::ptr;
use std::boxed::Box;

fn quarantine() -> Box<Quarantine> {
    Box::new(Quarantine {
        room: Cell::new(0),
        came: Cell::new(0),
        left: Cell::new(0),
        most: Cell::new(0),
        places: core::array::from_fn(|_| Cell::new(Place::new(ptr::null_mut(), None))),
        large_came: [const { AtomicU64::new(0) }; 2],
        large_left: [const { AtomicU64::new(0) }; 2],
    })
}

fn block(number: usize) -> *mut u8 {
    ptr::without_provenance_mut(number * 16)
}

#[test]
fn blocks_leave_in_the_order_in_which_they_came() {
    for class in [0, 20, 40] {
        let (waiting, bytes) = (quarantine(), block_bytes(class));
        waiting.share(1);
        let class_of = |number: usize| (number % 3 != 0).then_some(class);
        let next = Cell::new(1);
        let leave = |start: *mut u8, of: Option<usize>| {
            assert_eq!((start, of), (block(next.get()), class_of(next.get())));
            next.set(next.get() + 1);
            if of.is_none() {
                waiting.discount(bytes);
            }
        };
        let put = |start: *mut u8, class: usize| {
            let is_taken = start.addr() / 16 % 5 != 0;
            if is_taken {
                leave(start, Some(class));
            }
            is_taken
        };
        for came in 1..5000 {
            if waiting.push(block(came), bytes, class_of(came)) {
                while let Some((start, class)) = waiting.pop_each(false, put) {
                    leave(start, class);
                }
            }
        }
        assert!(waiting.iter().eq((next.get()..5000).map(block)), "{class}");
        assert!(next.get() > 5000 - PLACES - 1 && !waiting.is_over(), "no more leave than have to");
        while let Some((start, class)) = waiting.pop_each(true, put) {
            leave(start, class);
        }
        assert!(waiting.iter().next().is_none() && waiting.room.get() == BYTES_MOST as isize);
    }
}

#[test]
fn as_many_bytes_wait_as_the_bound_allows_and_fewer_where_there_are_many_heaps() {
    let room_for = |n_heaps| {
        let waiting = quarantine();
        waiting.share(n_heaps);
        1 + (1..).take_while(|&at| !waiting.push(block(at), 10_000, None)).count()
    };
    assert_eq!(room_for(1), BYTES_MOST.div_ceil(10_000));
    assert_eq!(room_for(64), (BYTES_OF_ALL / 64).div_ceil(10_000));
    assert_eq!(room_for(1 << 20), 1);
    assert!(Quarantine::takes(262_144) && !Quarantine::takes(LARGE_PART * BYTES_MOST));
}

#[test]
fn a_share_that_becomes_smaller_makes_blocks_leave() {
    let waiting = quarantine();
    waiting.share(1);
    assert!((1..10).all(|at| !waiting.push(block(at), 10_000, None)) && waiting.has_room(10_000));
    waiting.share(64);
    assert!(waiting.is_over() && !waiting.has_room(0));
    waiting.share(1);
    assert!(!waiting.is_over());
}
