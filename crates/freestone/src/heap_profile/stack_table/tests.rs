extern crate std;
use super::*;
use crate::heap_profile::tally::Weight;
use std::collections::BTreeSet;
use std::vec::Vec;

fn empty() -> &'static StackTable {
    let start = freestone_os::map_for_good(size_of::<StackTable>()).expect("memory");
    crate::testing::zeroed(start)
}

fn intern(table: &StackTable, stack: &[usize]) -> Option<StackIndex> {
    table.intern(stack, freestone_os::stack::hash_of(stack))
}

#[test]
fn a_stack_is_stored_once_and_comes_back_as_it_was() {
    let table = empty();
    let stacks: Vec<Vec<usize>> = (1..200usize).map(|n| (0..n % 64).map(|depth| n * 1000 + depth).collect()).collect();
    let hash = |stack: &Vec<usize>| freestone_os::stack::hash_of(stack);
    assert!(stacks.iter().all(|stack| table.find(hash(stack)).is_none()));
    let numbers: Vec<_> = stacks.iter().map(|stack| intern(table, stack).expect("room")).collect();
    let again: Vec<_> = stacks.iter().map(|stack| intern(table, stack).expect("room")).collect();
    let found: Vec<_> = stacks.iter().map(|stack| table.find(hash(stack)).expect("it was entered")).collect();
    assert_eq!(numbers, found);
    assert_eq!(numbers, again);
    let mut found = BTreeSet::new();
    let visit = |addresses: &[AtomicUsize], _| {
        found.insert(addresses.iter().map(|address| address.load(Ordering::Relaxed)).collect::<Vec<_>>());
        Ok::<_, ()>(())
    };
    table.for_each(0, visit).expect("no error");
    assert_eq!(found, stacks.into_iter().collect());
}

#[test]
fn a_full_table_takes_no_other_stack_and_finds_those_it_has() {
    let table = empty();
    let first = intern(table, &[7]).expect("room");
    let n = (1..).take_while(|&n| intern(table, &[n, 99]).is_some()).count();
    assert_eq!(n, STACKS_MOST - 1);
    assert_eq!((intern(table, &[7]), intern(table, &[8])), (Some(first), None));
}

#[test]
fn a_stack_without_room_for_its_addresses_counts_without_them() {
    let table = empty();
    let long: Vec<usize> = (0..64).collect();
    // Room for one stack and a half.
    table.n_frames.store(N_FRAMES - long.len() * 3 / 2, Ordering::Relaxed);
    intern(table, &long).expect("room");
    let late = intern(table, &[&[64][..], &long[1..]].concat()).expect("room for its counts");
    table.add(late, Weight::new(1.0, 64.0), 0);
    let mut nameless = Vec::new();
    let visit = |addresses: &[AtomicUsize], counts: StackCounts| {
        if addresses.is_empty() {
            nameless.push(counts.live.estimate());
        }
        Ok::<_, ()>(())
    };
    table.for_each(0, visit).expect("no error");
    assert_eq!(nameless, [(1.0, 64.0)]);
}
