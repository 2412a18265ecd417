#![allow(unsafe_code)]
use crate::config::key;
use crate::page::page_heap::OwnedRun;
use crate::page::policy::purge_bound::After;
use crate::page::runs::Extent;
use crate::page::tests::{MIB, dirty_bytes, dirty_mib, take_run, take_span, while_a_purge_is_held};
use crate::span::Kind;
use crate::testing::{World, free};
use crate::thread::heap::own::Own;
use freestone_base::lock::Forker;
use freestone_base::units::{PAGE_BYTES, PAGE_BYTES_LOG2, Pages};
use freestone_os::fake::Fake;
use std::time::{Duration, Instant};
use std::vec::Vec;

mod bursts;
mod early;
mod exchange;
mod kept;
mod some;

/// Replaces four blocks `n` times. Three go and three come.
fn replace(heap: Own<'_, Fake>, blocks: &mut [*mut u8], mib: usize, n: usize) {
    for at in 0..n {
        let gone = [at % 4, (at + 1) % 4, (at + 2) % 4];
        gone.iter().for_each(|&slot| free(heap, blocks[slot]));
        gone.iter().for_each(|&slot| blocks[slot] = heap.allocate(mib * MIB, 1).start);
    }
}

/// Blocks of 8 MiB are replaced one after the other: what was purged is needed again at once, so that purging stops.
#[test]
fn large_blocks_that_are_replaced_stop_being_purged_and_memory_goes_back_when_that_ends() {
    let world = World::new(4096);
    let heap = world.heap();
    let mut blocks: Vec<_> = (0..4).map(|_| heap.allocate(8 * MIB, 1).start).collect();
    // 24 MiB are free in between, more than the bound.
    replace(heap, &mut blocks, 8, 4);
    let before = world.os().purged_bytes();
    replace(heap, &mut blocks, 8, 20);
    assert_eq!(world.os().purged_bytes(), before, "what is needed again is purged");
    assert!(world.shared.pages.stats().peak_pages << PAGE_BYTES_LOG2 <= 60 * MIB as u64);
    blocks.into_iter().for_each(|block| free(heap, block));
    assert!(dirty_bytes(&world) <= 16 * MIB as u64, "an idle program keeps {}", dirty_bytes(&world));
    world.os().advance_ms(3000);
    world.shared.pages.purge_due_now();
    assert_eq!(dirty_bytes(&world), 0);
    world.check().unwrap();
}

/// 72 MiB are free in between: more than 64, which small programs may have beyond their peak.
#[test]
fn purging_begins_again_a_decay_time_after_large_blocks_last_took_dirty_memory_and_not_before() {
    let world = World::hardened(4096, "off");
    world.set(key::THP, "off");
    let heap = world.heap();
    let mut blocks: Vec<_> = (0..4).map(|_| heap.allocate(24 * MIB, 1).start).collect();
    replace(heap, &mut blocks, 24, 4);
    let before = world.os().purged_bytes();
    for round in 0..10 {
        world.os().advance_ms(300);
        replace(heap, &mut blocks, 24, 1);
        assert_eq!(world.os().purged_bytes(), before, "round {round}: what is needed again is purged");
    }
    world.os().advance_ms(1000);
    blocks.drain(1..).for_each(|block| free(heap, block));
    assert!(dirty_bytes(&world) <= 16 * MIB as u64);
}

#[test]
fn dirty_memory_is_counted_by_age() {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1g");
    world.spend_early_purges();
    let heap = world.heap();
    let walls: Vec<_> = (0..8).map(|_| heap.allocate(17 * MIB, 1).start).collect();
    for (at, &wall) in walls.iter().enumerate().filter(|(at, _)| at % 2 == 0) {
        free(heap, wall);
        world.os().advance_ms(if at < 6 { 260 } else { 0 });
    }
    // Freed 780, 520, 260 and 0 ms ago, of a decay time of 1000.
    let wall = 17 * MIB as u64;
    assert_eq!(world.shared.pages.stats_with_ages().1, [wall, wall, 2 * wall, 0]);
    walls.iter().skip(1).step_by(2).for_each(|&wall| free(heap, wall));
}

#[test]
fn at_most_sixteen_mebibytes_in_eight_decay_times_go_back_before_the_decay_time() {
    let world = World::hardened(4096, "off");
    let heap = world.heap();
    for round in 1..=12 {
        // In two lengths, so that no cache takes them.
        let blocks = [1, 2].map(|n| heap.allocate(n * MIB + round * PAGE_BYTES, 1).start);
        blocks.into_iter().for_each(|block| free(heap, block));
        let before = dirty_bytes(&world);
        world.os().advance_ms(19);
        world.shared.pages.purge_due_now();
        assert_eq!(dirty_bytes(&world), before, "round {round}: it may be needed again at once");
        world.os().advance_ms(1);
        world.shared.pages.purge_due_now();
    }
    let purged = world.shared.pages.purged_bytes();
    assert!((13 * MIB..=16 * MIB).contains(&(purged as usize)), "{purged}");
    world.os().advance_ms(1000);
    world.shared.pages.purge_due_now();
    assert_eq!(dirty_bytes(&world), 0);
    world.check().unwrap();
}

#[test]
fn one_call_gives_back_at_most_two_mebibytes_so_that_no_thread_waits_long_for_it() {
    let world = World::hardened(4096, "off");
    dirty_mib(&world, 10);
    assert_eq!(world.shared.pages.purge(), 10 * MIB);
    assert_eq!((dirty_bytes(&world), world.os().longest_purge_bytes()), (0, 2 * MIB));
    world.check().unwrap();
}

/// Of runs that lie apart many go back with one call, but no more than 2 MiB (13 runs are taken out at once, six fit): in a sandbox each by itself.
#[test]
fn runs_that_are_purged_together_take_few_calls_of_at_most_two_mebibytes() {
    for (sandbox, calls) in [("off", 4), ("on", 16)] {
        let world = World::hardened(4096, "off");
        world.set(key::SANDBOX, sandbox);
        world.set(key::DIRTY_MAX, "1g");
        world.spend_early_purges();
        let heap = world.heap();
        let blocks: Vec<*mut u8> = (0..32).map(|_| heap.allocate(5 * PAGE_BYTES, 1).start).collect();
        blocks.iter().step_by(2).for_each(|&block| free(heap, block));
        let pages = &world.shared.pages;
        let mut state = pages.lock();
        let _ = pages.empty_freed(&mut state);
        drop(state);
        assert_eq!(dirty_bytes(&world), 16 * 5 * PAGE_BYTES as u64);
        world.os().advance_ms(20_000);
        world.os().plan(None);
        world.shared.pages.purge_due_now();
        assert_eq!((dirty_bytes(&world), world.os().n_calls()), (0, calls), "sandbox={sandbox}");
        assert_eq!(world.os().longest_purge_bytes() > 5 * PAGE_BYTES, sandbox == "off");
        assert!(world.os().longest_purge_bytes() <= 2 * MIB);
        blocks.iter().skip(1).step_by(2).for_each(|&block| free(heap, block));
        world.check().unwrap();
    }
}

/// The purge stays inside the kernel all the while.
#[test]
fn a_fork_does_not_wait_for_a_purge() {
    let world = World::hardened(4096, "off");
    dirty_mib(&world, 10);
    let pages = &world.shared.pages;
    while_a_purge_is_held(&world, |_| {
        pages.lock_for_fork();
        // SAFETY: this thread took the lock in the line above.
        pages.unlock_after_fork(unsafe { Forker::new() });
        assert_eq!(pages.stats().purging_pages << PAGE_BYTES_LOG2, 2 * MIB as u64);
        world.os().hold_slow_calls(false);
    });
    assert_eq!(dirty_bytes(&world), 0);
    world.check().unwrap();
}

/// A thread reads the clock before it waits for the lock. What others free meanwhile is younger than that.
#[test]
fn memory_that_was_freed_after_the_clock_was_read_is_not_old() {
    let world = World::hardened(4096, "off");
    world.os().advance_ms(100_000);
    let pages = &world.shared.pages;
    let read_before = pages.now();
    world.os().advance_ms(4);
    let _heap = dirty_mib(&world, 10);
    drop(pages.purge_due(pages.lock(), read_before, After::Other));
    assert_eq!(dirty_bytes(&world), 10 * MIB as u64);
}

#[test]
fn runs_that_the_parent_was_purging_are_dirty_in_a_forked_child() {
    let world = World::hardened(4096, "off");
    let heap = dirty_mib(&world, 10);
    let pages = &world.shared.pages;
    {
        // What a thread that purges does before it drops the lock; it stays away, as in a child.
        let mut state = pages.state.lock();
        for n_pages in [16, 40] {
            let oldest = state.runs.oldest_dirty().unwrap();
            let _ = state.runs.begin_purge(Extent::new(oldest.first, Pages(n_pages)));
        }
        state.n_waiting = 3;
    }
    world.check().unwrap();
    assert_eq!(pages.stats().purging_pages, 56);
    pages.adopt_purging_in_child(true);
    world.check().unwrap();
    let stats = pages.stats();
    assert_eq!((stats.purging_pages, stats.dirty_pages), (0, 160));
    assert!(!heap.allocate(10 * MIB, 1).zero, "a part of it may not have been given back");
    assert_eq!(pages.purge(), 0);
}

/// The kernel may take lazily purged memory at any time: the heap does not purge it again.
#[test]
fn what_was_purged_lazily_does_not_make_every_free_a_system_call() {
    let world = World::new(4096);
    world.set(key::PURGE, "free");
    let heap = world.heap();
    let blocks: Vec<_> = (0..60).map(|_| heap.allocate(MIB, 1).start).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
    assert!(world.shared.pages.stats().stuck_pages > 0);
    world.os().plan(None);
    for _ in 0..100 {
        let blocks = [heap.allocate(3 * MIB, 1).start, heap.allocate(2 * MIB, 1).start];
        blocks.into_iter().for_each(|block| free(heap, block));
    }
    assert!(world.os().n_calls() < 20, "{} calls in 200 frees", world.os().n_calls());
    world.check().unwrap();
}

/// What the kernel was asked for says whether the memory is zero, not what the option says when it comes back.
#[test]
fn memory_that_is_purged_lazily_is_not_zero_if_the_option_is_set_meanwhile() {
    let world = World::hardened(4096, "off");
    world.set(key::PURGE, "free");
    let heap = dirty_mib(&world, 2);
    while_a_purge_is_held(&world, |_| {
        world.set(key::PURGE, "dontneed");
        world.os().hold_slow_calls(false);
    });
    assert!(!heap.allocate(2 * MIB, 1).zero, "the kernel may not have taken it yet");
}

/// The background thread reads the number of wake-ups, looks for work, and sleeps: a wake-up in between is not lost.
#[test]
fn a_thread_that_was_woken_since_it_looked_for_work_does_not_sleep() {
    let world = World::new(4096);
    let pages = &world.shared.pages;
    for _ in 0..3 {
        let seen = pages.wakes();
        pages.wake();
        assert_ne!(pages.wakes(), seen);
        pages.sleep(seen, None, || false);
    }
}

#[test]
fn a_free_wakes_a_thread_that_sleeps_until_something_is_dirty() {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1g");
    let pages = &world.shared.pages;
    let heap = world.heap();
    let block = heap.allocate(4 * MIB, 1).start;
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let seen = pages.wakes();
            while pages.stats().dirty_pages == 0 {
                pages.sleep(seen, None, || false);
            }
        });
        free(heap, block);
        sleeper.join().unwrap();
    });
}

/// Others see that the thread sleeps before it looks for the last time.
#[test]
fn a_run_that_only_waits_in_a_list_wakes_a_thread_that_sleeps_until_something_is_dirty() {
    let world = World::hardened(4096, "off");
    world.spend_early_purges();
    let pages = &world.shared.pages;
    let [span, block] = [take_span(&world), take_run(&world, 2)];
    drop(pages.purge_due(pages.lock(), pages.now(), After::Other));
    let frees: [&dyn Fn(OwnedRun); 2] = [&|run| pages.free(run), &|run| assert!(pages.list_freed(run).is_ok())];
    for (run, free) in [span, block].into_iter().zip(frees) {
        let run = core::cell::Cell::new(Some(run));
        let seen = pages.wakes();
        pages.sleep(seen, None, || {
            run.take().into_iter().for_each(free);
            assert_eq!(pages.state.lock().runs.counts().of(Kind::Dirty), Pages::ZERO, "it is in a list alone");
            assert_ne!(pages.wakes(), seen);
            true
        });
        pages.purge();
    }
}

#[test]
fn a_thread_sleeps_for_its_time_or_until_there_is_work_or_more_to_do() {
    let world = World::new(4096);
    let pages = &world.shared.pages;
    let begun = Instant::now();
    pages.sleep(pages.wakes(), Some(20), || unreachable!("only a thread that waits for work asks"));
    assert!(begun.elapsed() >= Duration::from_millis(20));
    pages.sleep(pages.wakes(), None, || true);
    // Another thread comes about work after this one has looked for it.
    pages.sleep(pages.wakes(), None, || {
        pages.wake_for_work();
        false
    });
    pages.free(take_run(&world, 5));
    pages.sleep(pages.wakes(), None, || false);
}

/// A thread that emptied a span before the background thread said that it sleeps has woken nobody.
#[test]
fn a_thread_does_not_sleep_while_a_span_waits_that_was_emptied_before() {
    let world = World::new(4096);
    let pages = &world.shared.pages;
    let span = take_span(&world);
    pages.emptied.set_most(Pages(1));
    pages.free(span);
    assert_eq!(pages.state.lock().runs.counts().of(Kind::Dirty), Pages::ZERO, "the span is in the list alone");
    assert!(pages.is_dirty());
    pages.sleep(pages.wakes(), None, || false);
}

#[test]
fn a_purge_that_nobody_waits_for_wakes_nobody() {
    let world = World::new(4096);
    dirty_mib(&world, 3);
    assert!(world.shared.pages.purge() > 0);
    assert_eq!(world.shared.pages.watch.purges(), 0);
}
