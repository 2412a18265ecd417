#![allow(unsafe_code)]
use super::*;
use crate::config::Harden;
use crate::stats::rows::HeapKind;
use crate::testing::World;
use crate::thread::life::succession::Which;
use crate::thread::mailbox::Life;
use crate::thread::upkeep;
use freestone_base::lock::Forker;
use freestone_base::units::PAGE_BYTES;
use freestone_os::fake::{Failure, Fake};
use freestone_os::{Errno, Os};
use std::vec::Vec;

#[test]
fn a_limit_below_what_the_heap_has_is_refused_and_the_one_before_stays() {
    let world = World::new(4096);
    let heap = world.explicit_heap();
    heap.set_limit(Some(20)).unwrap();
    assert!(!heap.enter().own().allocate(10 * PAGE_BYTES, 1).start.is_null());
    assert_eq!(heap.set_limit(Some(9)), Err(BelowUse));
    assert!(heap.enter().own().allocate(11 * PAGE_BYTES, 1).start.is_null(), "the limit of 20 pages stays");
    heap.set_limit(Some(10)).unwrap();
    heap.set_limit(None).unwrap();
    assert!(!heap.enter().own().allocate(11 * PAGE_BYTES, 1).start.is_null());
}

#[test]
fn small_spans_count_in_full_towards_the_limit() {
    let world = World::new(4096);
    let heap = world.explicit_heap();
    assert!(!heap.enter().own().allocate(16, 1).start.is_null());
    let n_pages = heap.enter().own().spans().n_pages();
    assert_eq!(heap.set_limit(Some(n_pages - 1)), Err(BelowUse));
    heap.set_limit(Some(n_pages)).unwrap();
    assert!(heap.enter().own().allocate(30_000, 1).start.is_null(), "a span of another class is one too many");
}

#[test]
fn a_record_that_is_used_again_has_no_limit() {
    let world = World::new(4096);
    let first = world.explicit_heap();
    first.set_limit(Some(2)).unwrap();
    // SAFETY: neither the heap nor a block of it is used any more.
    unsafe { world.threads.destroy(first) };
    let second = world.explicit_heap();
    assert!(core::ptr::eq(first, second), "the record is the same");
    assert!(!second.enter().own().allocate(10 * PAGE_BYTES, 1).start.is_null());
}

#[test]
fn an_explicit_heap_caches_no_large_run_and_its_freed_blocks_reach_it_at_once() {
    let world = World::new(4096);
    let (heap, thread) = (world.explicit_heap(), world.heap());
    for _ in 0..5 {
        let entered = heap.enter();
        let block = entered.own().allocate(2 * PAGE_BYTES, 1).start;
        // SAFETY: the block is this test's, and not used any more.
        unsafe { entered.own().free(block) };
        assert_eq!(entered.own().cache().cached_pages(), 0);
    }
    let small = heap.enter().own().allocate(100, 1).start;
    // SAFETY: as above.
    unsafe { thread.free(small) };
    upkeep::flush_all(heap.enter().own());
    assert_eq!(heap.enter().own().spans().n_pages(), 0, "the block is back, and its span has gone");
    world.check().unwrap();
}

#[test]
fn nobody_enters_a_heap_while_the_process_forks() {
    let world = World::new(4096);
    let heap = world.explicit_heap();
    heap.gated().lock_for_fork();
    assert!(heap.try_enter().is_none());
    // SAFETY: this thread took the gate, and goes on after the fork.
    heap.gated().unlock_after_fork(unsafe { Forker::new() });
    assert!(heap.try_enter().is_some());
}

/// Blocks that are many spans, or one where each step takes long.
const MANY: usize = if cfg!(miri) { 100 } else { 1000 };

/// Allocates `n` blocks in an explicit heap, and frees them from a thread that is not in it: they wait in its inbox.
fn waiting(world: &World, heap: &ExplicitHeap<Fake>, n: usize) {
    let thread = world.heap();
    let blocks: Vec<_> = (0..n).map(|_| heap.enter().own().allocate(512, 1).start).collect();
    for block in blocks {
        // SAFETY: the block is this test's, and not used any more.
        unsafe { thread.free(block) };
    }
    assert!(heap.gated().heap().mailbox().inbox().newest() != 0);
    world.end(thread);
}

/// Gives back what waits in inboxes, as a program that purges or the background thread does. Returns whether some may wait.
fn purge(world: &World, which: Which) -> bool {
    world.threads.purge_inboxes(&world.shared, which, &|| false)
}

#[test]
fn a_purge_empties_a_heap_that_no_thread_is_in() {
    for level in ["off", "default", "checks", "full"] {
        let world = World::hardened(4096, level);
        let heap = world.explicit_heap();
        waiting(&world, heap, MANY);
        let entered = heap.enter();
        purge(&world, Which::All);
        drop(entered);
        assert!(world.small_span_pages() > 0, "{level}: a thread was in it");
        purge(&world, Which::All);
        assert_eq!(world.small_span_pages(), 0, "{level}");
        assert_eq!(heap.gated().heap().mailbox().inbox().newest(), 0);
        world.check().unwrap();
        world.destroy(heap);
        purge(&world, Which::All);
        world.check().unwrap();
    }
}

#[test]
fn a_purge_empties_the_caches_of_a_heap_that_has_its_blocks_back() {
    let world = World::new(4096);
    let heap = world.explicit_heap();
    let entered = heap.enter();
    let block = entered.own().allocate(512, 1).start;
    // SAFETY: the block is this test's, and not used any more.
    unsafe { entered.own().free(block) };
    drop(entered);
    purge(&world, Which::Expired);
    assert!(world.small_span_pages() > 0);
    purge(&world, Which::All);
    assert_eq!(world.small_span_pages(), 0);
}

#[test]
fn blocks_that_have_waited_for_a_heap_for_the_decay_time_go_back_in_the_background() {
    let world = World::new(4096);
    let heap = world.explicit_heap();
    waiting(&world, heap, MANY);
    let decay_ms = u64::from(world.shared.settings().decay_ms().unwrap());
    assert!(purge(&world, Which::Expired));
    world.os().advance_ms(decay_ms - 1);
    assert!(purge(&world, Which::Expired));
    assert!(world.small_span_pages() > 0);
    world.os().advance_ms(1);
    purge(&world, Which::Expired);
    assert_eq!(world.small_span_pages(), 0);
    assert!(!purge(&world, Which::Expired));
    // A heap in use takes them itself.
    waiting(&world, heap, MANY);
    for _ in 0..3 {
        assert!(purge(&world, Which::Expired));
        world.os().advance_ms(decay_ms / 2);
        upkeep::tick(heap.enter().own(), world.os().now_ms() as u32);
        waiting(&world, heap, 10);
    }
    world.check().unwrap();
}

/// The record of a heap for whose watch there was no memory is kept for the next one.
#[test]
fn a_heap_that_could_not_begin_is_not_entered() {
    let mut n_refused = 0;
    for n_before in 0..12 {
        let world = World::new(4096);
        let _thread = world.heap();
        for _ in 0..n_before {
            let _ = world.explicit_heap();
        }
        let nth_call = world.os().n_calls();
        world.os().plan(Some(Failure { nth_call, errno: Errno::NOMEM, for_good: true }));
        // SAFETY: the parts are the world's, which outlives the heaps.
        while unsafe { world.threads.create_explicit(&world.shared, Harden::Checks) }.is_some() {}
        world.os().plan(None);
        let records = || world.threads.iter_kinds().filter(|(kind, ..)| *kind == HeapKind::Explicit);
        let (n_unused, n) = (records().filter(|(_, heap, _)| heap.shared().is_none()).count(), records().count());
        n_refused += n_unused;
        let _ = world.explicit_heap();
        assert_eq!(records().count(), n.max(n + 1 - n_unused), "a record is lost");
        purge(&world, Which::All);
        world.check().unwrap();
    }
    assert!(n_refused > 0);
}

#[test]
fn a_heap_that_has_ended_is_not_entered() {
    let world = World::new(4096);
    let heap = world.explicit_heap();
    waiting(&world, heap, 100);
    world.destroy(heap);
    assert_eq!(heap.gated().heap().life(), Life::NotCreated);
    purge(&world, Which::All);
    let again = world.explicit_heap();
    assert!(core::ptr::eq(heap, again));
    waiting(&world, again, 100);
    purge(&world, Which::All);
    assert_eq!(world.small_span_pages(), 0);
}
