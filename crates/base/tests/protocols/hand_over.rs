//! Blocks that are sent to a span's owner while the span changes hands.
#![allow(unsafe_code)]
//!
//! # Safety
//! Cells are accessed as the protocol allows: whether it does is what loom finds out. Records outlive the threads of a model.

use crate::nodes::{consume, node};
use crate::record::Record;
use crate::stated;
use freestone_base::inbox::{LinkKey, Node};
use freestone_base::sync::{AtomicPtr, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use std::ptr;
use std::sync::Arc;

/// A span, with the lock of its class: who owns it, and what only its owner touches.
struct Span {
    class: Mutex<()>,
    owner: AtomicPtr<Record>,
    blocks: UnsafeCell<u32>,
}

impl Span {
    fn owned_by(record: *mut Record) -> Self {
        Self { class: Mutex::new(()), owner: AtomicPtr::new(record), blocks: UnsafeCell::new(0) }
    }

    fn give_back(&self) {
        // SAFETY: the caller owns the span, or holds the lock of its class while the span is abandoned.
        self.blocks.with_mut(|blocks| unsafe { *blocks += 1 });
    }

    /// Sends one block to wherever its span is now, as the heap's `route` does. Returns whether it went into the span rather than an inbox.
    fn route(&self, block: *mut Node) -> bool {
        loop {
            let owner = self.owner.load(stated::ROUTE_OWNER.ordering());
            if owner.is_null() {
                let _list = self.class.lock().unwrap();
                if self.owner.load(stated::CENTRAL_FREE_OWNER.ordering()).is_null() {
                    self.give_back();
                    consume(block);
                    return true;
                }
                continue;
            }
            // SAFETY: records outlive the model's threads.
            let owner = unsafe { &*owner };
            owner.look();
            // SAFETY: the block is a chain of one, and this thread has it.
            if unsafe { owner.inbox.push(block, block, LinkKey::PLAIN) } {
                return false;
            }
            loom::thread::yield_now();
        }
    }
}

/// The hand-over of `docs/concurrency.md`: a block is in transit to A while A exits, and B adopts the span.
#[test]
fn a_block_in_transit_reaches_its_span_while_it_changes_hands() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let records = Arc::new([Record::new(), Record::new()]);
        records[0].initialise();
        let span = Arc::new(Span::owned_by(records[0].pointer()));
        let other = Arc::clone(&span);
        let sender = loom::thread::spawn(move || usize::from(other.route(node())));
        let other = (Arc::clone(&span), Arc::clone(&records));
        let adopter = loom::thread::spawn(move || {
            let (span, records) = other;
            records[1].initialise();
            let _list = span.class.lock().unwrap();
            if span.owner.load(Ordering::Relaxed).is_null() {
                span.owner.store(records[1].pointer(), stated::ADOPT_OWNER.ordering());
            }
        });
        // A exits: it frees its own last block, abandons the span, and closes its inbox.
        span.give_back();
        {
            let _list = span.class.lock().unwrap();
            span.owner.store(ptr::null_mut(), stated::ABANDON_OWNER.ordering());
        }
        let mut late = records[0].inbox.close();
        let mut n_home = 0;
        while !late.is_null() {
            // SAFETY: closing returned the chain, so this thread has its nodes.
            let next = unsafe { (*late).next };
            n_home += usize::from(span.route(late));
            late = next;
        }
        n_home += sender.join().unwrap();
        adopter.join().unwrap();
        // B drains its inbox at some later time.
        n_home += consume(records[1].inbox.take());
        assert_eq!(n_home, 1, "the block is lost, or was returned twice");
    });
}

/// A thread that reads a span's owner finds an initialised record, though only the owner's word orders the two.
fn owners_are_initialised(stores: Ordering, loads: Ordering) {
    loom::model(move || {
        let shared = Arc::new((Record::new(), Span::owned_by(ptr::null_mut())));
        let other = Arc::clone(&shared);
        let sender = loom::thread::spawn(move || {
            // SAFETY: records outlive the model's threads.
            if let Some(owner) = unsafe { other.1.owner.load(loads).as_ref() } {
                owner.look();
            }
        });
        shared.0.initialise();
        shared.1.owner.store(shared.0.pointer(), stores);
        sender.join().unwrap();
    });
}

#[test]
fn a_thread_that_sends_a_block_to_its_owner_finds_an_initialised_record() {
    let made = stated::NEW_SPAN_OWNER.ordering();
    owners_are_initialised(made, stated::SEND_OWNER.ordering());
}

#[test]
fn a_thread_that_routes_a_block_to_an_adopted_span_finds_an_initialised_record() {
    let adopted = stated::ADOPT_OWNER.ordering();
    owners_are_initialised(adopted, stated::ROUTE_OWNER.ordering());
}
