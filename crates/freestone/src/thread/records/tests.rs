#![allow(unsafe_code)]
use super::*;
use std::boxed::Box;
use std::vec::Vec;

struct Numbered {
    number: u32,
    links: RecordLinks<Self>,
}

impl Record for Numbered {
    fn links(&self) -> &RecordLinks<Self> {
        &self.links
    }
}

/// Adds a record that is never unmapped.
fn add(records: &Records<Numbered>, number: u32) -> &Numbered {
    let storage = Box::into_raw(Box::new(Numbered { number, links: RecordLinks::new() }));
    // SAFETY: the box is leaked, and a whole record.
    unsafe { records.add(storage, |record| assert_eq!(record.number, number)) }
}

#[test]
fn every_record_is_visited_newest_first_in_use_or_not() {
    let records = Records::new();
    let two = [1, 2].map(|number| add(&records, number))[1];
    records.put_back(two);
    add(&records, 3);
    assert_eq!(records.iter().map(|record| record.number).collect::<Vec<_>>(), [3, 2, 1]);
}

#[test]
fn a_record_that_was_put_back_is_taken_once() {
    let records = Records::new();
    assert!(records.take_unused().is_none());
    let (one, two) = (add(&records, 1), add(&records, 2));
    assert!(records.take_unused().is_none(), "both are in use");
    records.put_back(one);
    records.put_back(two);
    let taken: Vec<_> = core::iter::from_fn(|| records.take_unused()).map(|record| record.number).collect();
    assert_eq!(taken, [2, 1]);
}

fn numbers(stack: &RecordStack<Numbered>) -> Vec<u32> {
    core::iter::from_fn(|| stack.pop()).map(|record| record.number).collect()
}

#[test]
fn a_stack_gives_the_newest_first_and_removes_one_from_anywhere() {
    let records = Records::new();
    let all = [1, 2, 3, 4].map(|number| add(&records, number));
    for (removed, left) in [(4, [3, 2, 1]), (2, [4, 3, 1]), (1, [4, 3, 2])] {
        let stack = RecordStack::<Numbered>::new();
        all.iter().for_each(|&record| stack.push(record));
        assert_eq!(stack.remove_first(|record| record.number == removed).map(|record| record.number), Some(removed));
        assert!(stack.remove_first(|record| record.number == removed).is_none());
        assert_eq!(numbers(&stack), left);
        assert!(stack.pop().is_none());
    }
}
