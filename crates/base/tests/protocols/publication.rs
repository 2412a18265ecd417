//! What one thread initialises and other threads find.
#![allow(unsafe_code)]
//!
//! # Safety
//! Cells are accessed as the protocol allows: whether it does is what loom finds out. Records outlive the threads of a model.

use crate::record::Record;
use crate::stated;
use freestone_base::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use loom::cell::UnsafeCell;
use std::ptr;
use std::sync::Arc;

#[test]
fn a_thread_that_walks_the_list_of_heaps_finds_initialised_records() {
    loom::model(|| {
        let shared = Arc::new((AtomicPtr::new(ptr::null_mut::<Record>()), [Record::new(), Record::new()]));
        let other = Arc::clone(&shared);
        let walker = loom::thread::spawn(move || {
            let mut next = other.0.load(stated::ITER_FIRST.ordering());
            let mut n_seen = 0;
            // SAFETY: records outlive the model's threads.
            while let Some(record) = unsafe { next.as_ref() } {
                record.look();
                next = record.next.load(stated::ITER_NEXT.ordering());
                n_seen += 1;
            }
            n_seen
        });
        for record in &shared.1 {
            record.initialise();
            record.next.store(shared.0.load(Ordering::Relaxed), Ordering::Relaxed);
            shared.0.store(record.pointer(), stated::CREATION_PUBLISHES.ordering());
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
                let found = shared.0.load(stated::FALLBACK_LOAD.ordering());
                // SAFETY: records outlive the model's threads.
                if let Some(record) = unsafe { found.as_ref() } {
                    record.look();
                    return found.addr();
                }
                shared.1[own].initialise();
                let (taken, refused) = (stated::FALLBACK_EXCHANGE.ordering(), stated::FALLBACK_REFUSED.ordering());
                let _ = shared.0.compare_exchange(ptr::null_mut(), shared.1[own].pointer(), taken, refused);
            }
        };
        let other = Arc::clone(&fallback);
        let finder = loom::thread::spawn(move || find(&other, 1));
        let found = find(&fallback, 0);
        assert_eq!(found, finder.join().unwrap());
    });
}

#[test]
fn a_thread_that_finds_a_report_path_reads_what_was_set() {
    loom::model(|| {
        let shared = Arc::new((UnsafeCell::new(0), AtomicBool::new(false)));
        let other = Arc::clone(&shared);
        let reader = loom::thread::spawn(move || {
            if other.1.load(stated::REPORT_IS_SET.ordering()) {
                // SAFETY: written before it was set.
                assert_eq!(other.0.with(|path| unsafe { *path }), 7);
            }
        });
        // SAFETY: no thread reads before it is set.
        shared.0.with_mut(|path| unsafe { *path = 7 });
        shared.1.store(true, stated::REPORT_SET.ordering());
        reader.join().unwrap();
    });
}

#[test]
fn calls_of_the_listener_come_one_after_the_other() {
    loom::model(|| {
        let shared = Arc::new((AtomicU32::new(0), UnsafeCell::new(0)));
        let tell = |shared: &(AtomicU32, UnsafeCell<u32>)| {
            let (taken, refused) = (stated::TELLER_TAKE.ordering(), stated::TELLER_REFUSED.ordering());
            if shared.0.compare_exchange(0, 7, taken, refused).is_err() {
                return;
            }
            // SAFETY: no other thread calls the listener now.
            shared.1.with_mut(|told| unsafe { *told += 1 });
            shared.0.store(0, stated::TELLER_RELEASE.ordering());
        };
        let other = Arc::clone(&shared);
        let teller = loom::thread::spawn(move || tell(&other));
        tell(&shared);
        teller.join().unwrap();
    });
}

#[test]
fn a_thread_that_sees_how_far_the_page_map_reaches_finds_it_committed() {
    loom::model(|| {
        let shared = Arc::new((UnsafeCell::new(0), AtomicU32::new(0)));
        let other = Arc::clone(&shared);
        let reader = loom::thread::spawn(move || {
            if other.1.load(stated::REACH_LOAD.ordering()) > 0 {
                // SAFETY: committed before it was in reach.
                assert_eq!(other.0.with(|layout| unsafe { *layout }), 7);
            }
        });
        // SAFETY: no thread reads it before the page map reaches that far.
        shared.0.with_mut(|layout| unsafe { *layout = 7 });
        shared.1.store(1, stated::REACH_STORE.ordering());
        reader.join().unwrap();
    });
}
