//! What the heap writes about itself: counts, profiles, recordings, guarded blocks, and the pages that other processes read.
#![allow(unsafe_code)]
//!
//! # Safety
//! Cells are accessed as the protocol allows: whether it does is what loom finds out.

use crate::stated;
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering, fence};
use loom::cell::UnsafeCell;
use std::sync::Arc;

/// One thread makes something and publishes it; another that finds it reads it.
fn is_found_whole(publishes: Ordering, finds: Ordering) {
    loom::model(move || {
        let shared = Arc::new((UnsafeCell::new(0), AtomicU32::new(0)));
        let other = Arc::clone(&shared);
        let reader = loom::thread::spawn(move || {
            if other.1.load(finds) > 0 {
                // SAFETY: written before it was published, and not after that.
                assert_eq!(other.0.with(|made| unsafe { *made }), 7);
            }
        });
        // SAFETY: no thread reads it before it is published.
        shared.0.with_mut(|made| unsafe { *made = 7 });
        // Whatever the heap publishes with: all of them are stores.
        shared.1.swap(1, publishes);
        reader.join().unwrap();
    });
}

#[test]
fn a_table_that_is_mapped_late_is_mapped_when_it_is_found() {
    is_found_whole(stated::LATE_MAPPED.ordering(), stated::LATE_FOUND.ordering());
}

#[test]
fn the_heap_of_sampled_blocks_is_initialised_when_it_is_found() {
    is_found_whole(stated::PROFILE_HEAP_SET.ordering(), stated::PROFILE_HEAP.ordering());
}

#[test]
fn a_dump_finds_the_addresses_of_a_stack_it_finds() {
    is_found_whole(stated::STACK_STORED.ordering(), stated::STACK_SEEN.ordering());
}

#[test]
fn the_records_of_guarded_blocks_are_mapped_when_they_are_found() {
    is_found_whole(stated::GUARDED_MAPPED.ordering(), stated::GUARDED_SLOTS.ordering());
}

#[test]
fn a_thread_that_sees_the_state_of_a_guarded_block_sees_what_belongs_to_it() {
    is_found_whole(stated::GUARDED_STATE_SET.ordering(), stated::GUARDED_STATE.ordering());
}

#[test]
fn what_a_watched_heap_has_is_mapped_when_it_is_found() {
    is_found_whole(stated::WATCH_BEGUN.ordering(), stated::WATCH_SEEN.ordering());
}

#[test]
fn a_thread_that_walks_the_recorded_threads_finds_initialised_records() {
    is_found_whole(stated::RECORDED_ADDED.ordering(), stated::RECORDED_ALL.ordering());
}

#[test]
fn a_thread_that_finds_a_recording_open_finds_its_file() {
    for finds in [stated::TRACE_OPEN_FOR_A_CHUNK, stated::TRACE_OPEN_AT_THE_END] {
        is_found_whole(stated::TRACE_OPENED.ordering(), finds.ordering());
    }
}

#[test]
fn a_reader_that_knows_a_page_of_statistics_knows_whose_it_is() {
    is_found_whole(stated::PAGE_MADE.ordering(), stated::PAGE_KNOWN.ordering());
}

/// Another process reads the page as a file: what it copies comes out of the kernel after what it copied before.
#[test]
fn a_process_that_finds_a_page_for_requests_knows_whose_it_is() {
    is_found_whole(stated::PROFILE_PAGE_MADE.ordering(), Ordering::Acquire);
}

/// Two threads want something at once, and try once; it is one thread's alone from taking to leaving.
fn is_exclusive(takes: Ordering, leaves: Ordering) {
    loom::model(move || {
        let shared = Arc::new((AtomicBool::new(false), UnsafeCell::new(0)));
        let try_once = move |shared: &(AtomicBool, UnsafeCell<u32>)| {
            if !shared.0.swap(true, takes) {
                // SAFETY: this thread took it, and no other has it.
                shared.1.with_mut(|uses| unsafe { *uses += 1 });
                shared.0.store(false, leaves);
            }
        };
        let other = Arc::clone(&shared);
        let second = loom::thread::spawn(move || try_once(&other));
        try_once(&shared);
        second.join().unwrap();
    });
}

#[test]
fn the_record_of_a_thread_that_ended_passes_to_another_as_it_was_left() {
    is_exclusive(stated::RECORDED_TAKEN.ordering(), stated::RECORDED_LEFT.ordering());
}

#[test]
fn one_thread_at_a_time_writes_the_page_of_statistics() {
    is_exclusive(stated::PAGE_WRITER_TAKES.ordering(), stated::PAGE_WRITER_LEAVES.ordering());
}

#[test]
fn one_thread_at_a_time_serves_requests_for_profiles() {
    is_exclusive(stated::PROFILE_SERVER_TAKES.ordering(), stated::PROFILE_SERVER_LEAVES.ordering());
}

/// A thread makes a file while another says that the process ends: one of them sees what the other did, and removes the file.
fn no_file_stays(created: Ordering, off: Ordering) {
    loom::model(move || {
        let shared = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
        let other = Arc::clone(&shared);
        let maker = loom::thread::spawn(move || {
            let (is_made, is_over) = &*other;
            is_made.store(true, Ordering::Relaxed);
            fence(created);
            is_over.load(Ordering::Relaxed)
        });
        let (is_made, is_over) = &*shared;
        is_over.store(true, Ordering::Relaxed);
        fence(off);
        let is_seen = is_made.load(Ordering::Relaxed);
        assert!(maker.join().unwrap() || is_seen, "the file stays");
    });
}

#[test]
fn a_page_of_statistics_that_is_made_while_the_process_ends_is_removed() {
    no_file_stays(stated::PAGE_CREATED.ordering(), stated::PAGE_OFF.ordering());
}

#[test]
fn a_page_for_requests_that_is_made_while_the_process_ends_is_removed() {
    no_file_stays(stated::PROFILE_PAGE_CREATED.ordering(), stated::PROFILE_PAGE_OFF.ordering());
}

/// The page for requests: the number of the last request, that of the last answer, and its error, ten times the number here. The asker makes another request when it
/// has read the error of the last.
#[test]
fn the_error_of_an_answer_is_there_until_the_asker_has_read_it() {
    loom::model(|| {
        let page = Arc::new((AtomicU32::new(0), AtomicU32::new(0), UnsafeCell::new(0)));
        let other = Arc::clone(&page);
        let server = loom::thread::spawn(move || {
            let (request, answered, error) = &*other;
            while answered.load(Ordering::Relaxed) < 2 {
                let asked = request.load(stated::PROFILE_ASKED.ordering());
                if asked != answered.load(Ordering::Relaxed) {
                    // SAFETY: the asker waits for the answer.
                    error.with_mut(|error| unsafe { *error = asked * 10 });
                    answered.store(asked, stated::PROFILE_ANSWERED.ordering());
                }
                loom::thread::yield_now();
            }
        });
        let (request, answered, error) = &*page;
        for asked in 1..=2 {
            request.store(asked, Ordering::Release);
            while answered.load(Ordering::Acquire) != asked {
                loom::thread::yield_now();
            }
            // SAFETY: the server writes it again after the next request.
            assert_eq!(error.with(|error| unsafe { *error }), asked * 10);
        }
        server.join().unwrap();
    });
}

const NONE: u32 = 0;
const TAKEN: u32 = u32::MAX;

/// An entry of the table of live samples: the block's address, and the stack that it was sampled with, the address times ten.
struct Entry {
    address: AtomicU32,
    stack: UnsafeCell<u32>,
}

impl Entry {
    fn insert(&self, address: u32) -> bool {
        let (taken, entered) = (stated::SAMPLE_PLACE_TAKEN.ordering(), stated::SAMPLE_ENTERED.ordering());
        let is_taken = self.address.load(Ordering::Relaxed) == NONE
            && self.address.compare_exchange(NONE, TAKEN, taken, Ordering::Relaxed).is_ok();
        if is_taken {
            // SAFETY: this thread took the entry, and no other reads it before it has an address.
            self.stack.with_mut(|stack| unsafe { *stack = address * 10 });
            self.address.store(address, entered);
        }
        is_taken
    }

    fn remove(&self, address: u32) {
        if self.address.load(stated::SAMPLE_FOUND.ordering()) == address {
            // SAFETY: entered before the address was, and not written again before the address is removed.
            assert_eq!(self.stack.with(|stack| unsafe { *stack }), address * 10);
            let removed = stated::SAMPLE_REMOVED.ordering();
            assert!(self.address.compare_exchange(address, NONE, removed, Ordering::Relaxed).is_ok());
        }
    }
}

#[test]
fn a_sample_is_removed_with_the_stack_it_was_entered_with_while_its_entry_is_used_again() {
    loom::model(|| {
        let entry = Arc::new(Entry { address: AtomicU32::new(0), stack: UnsafeCell::new(0) });
        assert!(entry.insert(5));
        let other = Arc::clone(&entry);
        let remover = loom::thread::spawn(move || {
            other.remove(5);
            loom::thread::yield_now();
            other.remove(6);
        });
        // The heap would take another entry: here this one is to be used again.
        while !entry.insert(6) {
            loom::thread::yield_now();
        }
        remover.join().unwrap();
    });
}

/// What the heap adds to the frees that a room stands for while it is being set.
const IN_CHANGE: u32 = 1000;

/// The frees of a bin: what was granted, ever, less its room.
fn frees(granted: &AtomicU32, room: &AtomicU32) -> u32 {
    loop {
        let before = granted.load(stated::FREES_GRANTED.ordering());
        let left = room.load(stated::FREES_ROOM.ordering());
        if left >= IN_CHANGE {
            return left - IN_CHANGE;
        }
        if granted.load(Ordering::Relaxed) == before {
            return before.wrapping_sub(left);
        }
        loom::thread::yield_now();
    }
}

#[test]
fn another_thread_reads_the_frees_of_a_bin_whose_room_is_being_set() {
    loom::model(|| {
        let bin = Arc::new((AtomicU32::new(3), AtomicU32::new(1)));
        let other = Arc::clone(&bin);
        let reader = loom::thread::spawn(move || {
            let [first, second] = [(); 2].map(|()| frees(&other.0, &other.1));
            assert!(first == 2 && second == 2, "{first}, then {second}");
        });
        let (granted, room) = &*bin;
        room.store(IN_CHANGE + 2, stated::ROOM_IN_CHANGE.ordering());
        granted.store(6, stated::ROOM_GRANTED.ordering());
        room.store(4, stated::ROOM_SET.ordering());
        reader.join().unwrap();
    });
}

/// The page of live statistics: the number of the last state, and two halves that states are written to in turn, of two words here.
#[test]
fn a_state_of_the_page_of_statistics_is_read_whole_or_not_at_all() {
    loom::model(|| {
        let page = Arc::new((
            AtomicU32::new(0),
            [[AtomicU32::new(0), AtomicU32::new(0)], [AtomicU32::new(0), AtomicU32::new(0)]],
        ));
        let other = Arc::clone(&page);
        let reader = loom::thread::spawn(move || {
            let (latest, halves) = &*other;
            let number = latest.load(stated::PAGE_LATEST.ordering());
            let [first, second] = &halves[number as usize % 2];
            let state = [first.load(Ordering::Relaxed), second.load(Ordering::Relaxed)];
            fence(stated::PAGE_AFTER_WORDS.ordering());
            if latest.load(Ordering::Relaxed) == number {
                assert_eq!(state, [number; 2]);
            }
        });
        let (latest, halves) = &*page;
        for number in 1..=3 {
            fence(stated::PAGE_BEFORE_WORDS.ordering());
            halves[number as usize % 2].iter().for_each(|word| word.store(number, Ordering::Relaxed));
            latest.store(number, stated::PAGE_WRITTEN.ordering());
        }
        reader.join().unwrap();
    });
}
