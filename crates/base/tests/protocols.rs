//! Loom models of the heap's own protocols: how spans, records and wake-ups pass between threads.
#![cfg(loom)]
#![allow(unsafe_code)]
//!
//! The heap itself is a thousand times too large for loom. These models state each protocol in a few lines, over the real inbox and loom's own
//! locks (ours has its models), and take every ordering from the heap's source: [`stated`] finds the operation in the text. So an ordering
//! that is weakened there fails a model here (`cargo xtask orderings`), and an operation that is no longer there does so, too.
//!
//! # Safety
//! Cells are accessed as the protocol allows: whether it does is what loom finds out.

use freestone_base::inbox::{Inbox, Node};
use freestone_base::lock::Parking;
use freestone_base::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use std::ptr;
use std::sync::Arc;

const CENTRAL: &str = include_str!("../../freestone/src/central.rs");
const RECORDS: &str = include_str!("../../freestone/src/thread/records.rs");
const REMOTE_FREES: &str = include_str!("../../freestone/src/thread/remote_frees.rs");
const SPANS: &str = include_str!("../../freestone/src/thread/spans.rs");
const LOCAL_HEAP: &str = include_str!("../../freestone/src/api/local_heap.rs");
const PAGES: &str = include_str!("../../freestone/src/page/heap.rs");
const BACKGROUND: &str = include_str!("../../freestone/src/api/background.rs");
const PURGE: &str = include_str!("../../freestone/src/page/purge.rs");
const REPORT: &str = include_str!("../../freestone/src/api/report.rs");
const PRESSURE: &str = include_str!("../../freestone/src/api/pressure.rs");

/// The `nth` ordering after the first `operation` behind `function` in a source.
fn nth_stated(source: &str, function: &str, operation: &str, nth: usize) -> Ordering {
    let body = source.split_once(function).unwrap_or_else(|| panic!("`{function}` is no longer there")).1;
    let call = body.split_once(operation).unwrap_or_else(|| panic!("`{operation}` is no longer in `{function}`")).1;
    let name = call.split("Ordering::").nth(nth + 1).unwrap();
    match &name[..name.find(|c: char| !c.is_alphanumeric()).unwrap()] {
        "Relaxed" => Ordering::Relaxed,
        "Acquire" => Ordering::Acquire,
        "Release" => Ordering::Release,
        "AcqRel" => Ordering::AcqRel,
        "SeqCst" => Ordering::SeqCst,
        other => panic!("{other} is no ordering"),
    }
}

fn stated(source: &str, function: &str, operation: &str) -> Ordering {
    nth_stated(source, function, operation, 0)
}

/// A thread heap's record: its memory, which was zeroed before it was anybody's, and its inbox.
struct Record {
    memory: UnsafeCell<u32>,
    inbox: Inbox,
    next: AtomicPtr<Record>,
}

impl Record {
    fn new() -> Self {
        Self { memory: UnsafeCell::new(0), inbox: Inbox::new(), next: AtomicPtr::new(ptr::null_mut()) }
    }

    fn initialise(&self) {
        // SAFETY: nobody knows of the record.
        self.memory.with_mut(|memory| unsafe { *memory = 1 });
    }

    fn look(&self) {
        // SAFETY: the record was initialised before it was published.
        self.memory.with(|memory| unsafe { assert_eq!(*memory, 1) });
    }

    fn pointer(&self) -> *mut Self {
        ptr::from_ref(self).cast_mut()
    }
}

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
        // SAFETY: the span is the caller's.
        self.blocks.with_mut(|blocks| unsafe { *blocks += 1 });
    }

    /// `thread::route`: one block to wherever its span is now. Whether it went into the span, and not into an inbox.
    fn route(&self, block: *mut Node) -> bool {
        loop {
            let owner = self.owner.load(stated(REMOTE_FREES, "fn owner_of_span<", ".owner.load("));
            if owner.is_null() {
                let _list = self.class.lock().unwrap();
                if self.owner.load(stated(CENTRAL, "fn free<", "owner.load(")).is_null() {
                    self.give_back();
                    consume(block);
                    return true;
                }
                continue;
            }
            // SAFETY: records outlive the model's threads.
            let owner = unsafe { &*owner };
            owner.look();
            // SAFETY: a chain of one that is ours.
            if unsafe { owner.inbox.push(block, block) } {
                return false;
            }
            loom::thread::yield_now();
        }
    }
}

fn block() -> *mut Node {
    Box::into_raw(Box::new(Node { next: ptr::null_mut() }))
}

/// Frees a chain; how long it was.
fn consume(mut chain: *mut Node) -> u32 {
    let mut len = 0;
    while !chain.is_null() {
        // SAFETY: every node was made by `block` and is taken once.
        let node = unsafe { Box::from_raw(chain) };
        chain = node.next;
        len += 1;
    }
    len
}

/// The hand-over of `docs/concurrency.md`: a block is on its way to A while A ends, and B adopts the span.
#[test]
fn a_block_in_transit_reaches_its_span_while_it_changes_hands() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let records = Arc::new([Record::new(), Record::new()]);
        records[0].initialise();
        let span = Arc::new(Span::owned_by(records[0].pointer()));
        let other = Arc::clone(&span);
        let sender = loom::thread::spawn(move || u32::from(other.route(block())));
        let other = (Arc::clone(&span), Arc::clone(&records));
        let adopter = loom::thread::spawn(move || {
            let (span, records) = other;
            records[1].initialise();
            let _list = span.class.lock().unwrap();
            if span.owner.load(Ordering::Relaxed).is_null() {
                span.owner.store(records[1].pointer(), stated(CENTRAL, "fn adopt<", "owner.store("));
            }
        });
        // A ends: it gives its own last block back, abandons the span, and closes its inbox.
        span.give_back();
        {
            let _list = span.class.lock().unwrap();
            span.owner.store(ptr::null_mut(), stated(CENTRAL, "fn abandon<", "owner.store("));
        }
        let mut late = records[0].inbox.close();
        let mut n_home = 0;
        while !late.is_null() {
            // SAFETY: the chain is ours.
            let next = unsafe { (*late).next };
            n_home += u32::from(span.route(late));
            late = next;
        }
        n_home += sender.join().unwrap();
        adopter.join().unwrap();
        // B drains at its leisure.
        n_home += consume(records[1].inbox.take());
        assert_eq!(n_home, 1, "the block is lost, or came home twice");
    });
}

/// Whoever reads a span's owner finds an initialised record, though nothing but the owner's word orders the two.
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
fn who_sends_a_block_home_finds_an_initialised_record() {
    let made = stated(SPANS, "fn allocate<", "owner.store(");
    owners_are_initialised(made, stated(REMOTE_FREES, "fn owner_of_span<", ".owner.load("));
}

#[test]
fn who_routes_a_block_to_an_adopted_span_finds_an_initialised_record() {
    let adopted = stated(CENTRAL, "fn adopt<", "owner.store(");
    owners_are_initialised(adopted, stated(REMOTE_FREES, "fn owner_of_span<", ".owner.load("));
}

#[test]
fn whoever_walks_the_list_of_heaps_finds_initialised_records() {
    loom::model(|| {
        let shared = Arc::new((AtomicPtr::new(ptr::null_mut::<Record>()), [Record::new(), Record::new()]));
        let other = Arc::clone(&shared);
        let walker = loom::thread::spawn(move || {
            let mut next = other.0.load(stated(RECORDS, "fn iter(", "self.all.load("));
            let mut n_seen = 0;
            // SAFETY: records outlive the model's threads.
            while let Some(record) = unsafe { next.as_ref() } {
                record.look();
                next = record.next.load(stated(RECORDS, "fn iter(", "next.load("));
                n_seen += 1;
            }
            n_seen
        });
        for record in &shared.1 {
            record.initialise();
            record.next.store(shared.0.load(Ordering::Relaxed), Ordering::Relaxed);
            shared.0.store(record.pointer(), stated(RECORDS, "fn add(", "self.all.store("));
        }
        assert!(walker.join().unwrap() <= 2);
    });
}

#[test]
fn there_is_one_fallback_heap_and_it_is_initialised() {
    loom::model(|| {
        let fallback = Arc::new((AtomicPtr::new(ptr::null_mut::<Record>()), [Record::new(), Record::new()]));
        let find = |shared: &(AtomicPtr<Record>, [Record; 2]), own: usize| {
            loop {
                let found = shared.0.load(stated(LOCAL_HEAP, "fn fallback(", "fallback.load("));
                // SAFETY: records outlive the model's threads.
                if let Some(record) = unsafe { found.as_ref() } {
                    record.look();
                    return found.addr();
                }
                shared.1[own].initialise();
                let order = |nth| nth_stated(LOCAL_HEAP, "fn fallback(", "fallback.compare_exchange(", nth);
                let _ = shared.0.compare_exchange(ptr::null_mut(), shared.1[own].pointer(), order(0), order(1));
            }
        };
        let other = Arc::clone(&fallback);
        let finder = loom::thread::spawn(move || find(&other, 1));
        let found = find(&fallback, 0);
        assert_eq!(found, finder.join().unwrap());
    });
}

#[test]
fn who_finds_a_report_path_reads_what_was_set() {
    loom::model(|| {
        let shared = Arc::new((UnsafeCell::new(0), AtomicBool::new(false)));
        let other = Arc::clone(&shared);
        let reader = loom::thread::spawn(move || {
            if other.1.load(stated(REPORT, "fn get(", "is_set.load(")) {
                // SAFETY: written before it was set.
                assert_eq!(other.0.with(|path| unsafe { *path }), 7);
            }
        });
        // SAFETY: nobody reads before it is set.
        shared.0.with_mut(|path| unsafe { *path = 7 });
        shared.1.store(true, stated(REPORT, "fn set(", "is_set.store("));
        reader.join().unwrap();
    });
}

#[test]
fn calls_for_relief_come_one_after_the_other() {
    loom::model(|| {
        let shared = Arc::new((AtomicU32::new(0), UnsafeCell::new(0)));
        let tell = |shared: &(AtomicU32, UnsafeCell<u32>)| {
            let order = |nth| nth_stated(PRESSURE, "fn notify(", "notifier.compare_exchange(", nth);
            if shared.0.compare_exchange(0, 7, order(0), order(1)).is_err() {
                return;
            }
            // SAFETY: nobody else is being told.
            shared.1.with_mut(|told| unsafe { *told += 1 });
            shared.0.store(0, stated(PRESSURE, "fn notify(", "notifier.store("));
        };
        let other = Arc::clone(&shared);
        let teller = loom::thread::spawn(move || tell(&other));
        tell(&shared);
        teller.join().unwrap();
    });
}

#[test]
fn who_sees_how_far_the_page_map_reaches_finds_it_committed() {
    loom::model(|| {
        let shared = Arc::new((UnsafeCell::new(0), AtomicU32::new(0)));
        let other = Arc::clone(&shared);
        let reader = loom::thread::spawn(move || {
            if other.1.load(stated(PAGES, "fn reach(", "reach.load(")) > 0 {
                // SAFETY: committed before it was in reach.
                assert_eq!(other.0.with(|layout| unsafe { *layout }), 7);
            }
        });
        // SAFETY: nobody reads before it is in reach.
        shared.0.with_mut(|layout| unsafe { *layout = 7 });
        shared.1.store(1, stated(PAGES, "fn publish_reach(", "reach.store("));
        reader.join().unwrap();
    });
}

const NONE: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const ENDING: u32 = 3;

/// Whoever starts the background thread writes down which it is, and whoever ends it reads that; several threads do both.
#[test]
fn who_ends_the_background_thread_knows_which_it_is() {
    loom::model(|| {
        let shared = Arc::new((AtomicU32::new(NONE), UnsafeCell::new(0)));
        let start_and_end = |shared: &(AtomicU32, UnsafeCell<u32>)| {
            let order = |nth| nth_stated(BACKGROUND, "fn start(", "state.compare_exchange(", nth);
            if shared.0.compare_exchange(NONE, STARTING, order(0), order(1)).is_ok() {
                // SAFETY: this thread moved the state from none to starting.
                shared.1.with_mut(|thread| unsafe { *thread = 7 });
                shared.0.store(RUNNING, stated(BACKGROUND, "fn start(", "state.store(RUNNING"));
            }
            let order = |nth| nth_stated(BACKGROUND, "fn end(", "state.compare_exchange(", nth);
            if shared.0.compare_exchange(RUNNING, ENDING, order(0), order(1)).is_ok() {
                // SAFETY: this thread moved the state from running to ending.
                shared.1.with(|thread| unsafe { assert_eq!(*thread, 7) });
                shared.0.store(NONE, stated(BACKGROUND, "fn end(", "state.store(NONE"));
            }
        };
        let other = Arc::clone(&shared);
        let thread = loom::thread::spawn(move || start_and_end(&other));
        start_and_end(&shared);
        thread.join().unwrap();
    });
}

loom::lazy_static! {
    static ref QUEUE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// The kernel's futex.
struct Bed;

impl Parking for Bed {
    fn wait(word: &AtomicU32, expected: u32) {
        let queue = QUEUE.0.lock().unwrap();
        if word.load(Ordering::Relaxed) == expected {
            drop(QUEUE.1.wait(queue));
        }
    }

    fn wake_one(_word: &AtomicU32) {
        let _queue = QUEUE.0.lock().unwrap();
        QUEUE.1.notify_one();
    }
}

/// What the background thread looks after: the page heap's lock with what is dirty, the word it sleeps on, and how many threads are left.
struct Watched {
    state: Mutex<u32>,
    wakes: AtomicU32,
    asleep: AtomicBool,
    n_threads: AtomicU32,
}

impl Watched {
    fn new() -> Arc<Self> {
        let (wakes, n_threads) = (AtomicU32::new(0), AtomicU32::new(1));
        Arc::new(Self { state: Mutex::new(0), wakes, asleep: AtomicBool::new(false), n_threads })
    }

    fn wake(&self) {
        self.wakes.fetch_add(1, stated(PURGE, "fn wake(", "wakes.fetch_add("));
        Bed::wake_one(&self.wakes);
    }

    fn wake_for_dirty(&self) {
        let order = |operation| stated(PURGE, "fn wake_for_dirty(", operation);
        if self.asleep.load(order("asleep.load(")) && self.asleep.swap(false, order("asleep.swap(")) {
            self.wake();
        }
    }

    /// The background thread: it looks until it `ends`, and sleeps while there is nothing to look after.
    fn run(&self, ends: impl Fn(&Self, u32) -> bool) {
        loop {
            let seen = self.wakes.load(stated(PURGE, "fn wakes(", "wakes.load("));
            let purged = core::mem::replace(&mut *self.state.lock().unwrap(), 0);
            if ends(self, purged) {
                return;
            }
            self.asleep.store(true, stated(PURGE, "fn sleep(", "asleep.store("));
            if *self.state.lock().unwrap() == 0 {
                Bed::wait(&self.wakes, seen);
            }
            self.asleep.store(false, Ordering::Relaxed);
        }
    }
}

/// Something becomes dirty while the background thread falls asleep: it is given back all the same.
#[test]
fn the_background_thread_sleeps_through_nothing() {
    loom::model(|| {
        let watched = Watched::new();
        let other = Arc::clone(&watched);
        let thread = loom::thread::spawn(move || other.run(|_, purged| purged > 0));
        *watched.state.lock().unwrap() += 1;
        watched.wake_for_dirty();
        thread.join().unwrap();
    });
}

/// The last thread of the program ends, and so does the background thread. The count itself orders nothing: the wake-up has to.
#[test]
fn the_background_thread_does_not_outsleep_the_program() {
    loom::model(|| {
        let watched = Watched::new();
        let other = Arc::clone(&watched);
        let thread = loom::thread::spawn(move || other.run(|this, _| this.n_threads.load(Ordering::Relaxed) == 0));
        watched.n_threads.fetch_sub(1, Ordering::Relaxed);
        watched.wake();
        thread.join().unwrap();
    });
}
