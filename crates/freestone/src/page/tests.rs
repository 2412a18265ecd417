//! All options that change how memory is taken and given back, and helpers of the page heap's tests: over the fake kernel, through whole heaps.
#![allow(unsafe_code)]
use crate::config::key;
use crate::page::Run;
use crate::page::page_heap::OwnedRun;
use crate::page::policy::purge_bound::After;
use crate::page::runs::Extent;
use crate::span::Kind;
use crate::testing::{OneHeap, World, free};
use crate::thread::heap::own::Own;
use freestone_base::lock::Forker;
use freestone_base::units::{PAGE_BYTES_LOG2, Pages};
use freestone_os::Errno;
use freestone_os::fake::{Failure, Fake};
use freestone_testkit::ops::{Mix, generate, play};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec::Vec;

pub(in crate::page) const MIB: usize = 1 << 20;
const HUGE_BYTES: usize = 2 * MIB;

/// A world in which dirty memory stays, without huge pages.
pub(in crate::page) fn world_that_stays_dirty() -> World {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1g");
    // Never.
    world.set(key::DECAY_MS, "4294967295");
    world.set(key::THP, "off");
    world
}

/// The pages that are handed out, and those that were used since the last purge.
#[derive(Default)]
pub(in crate::page) struct HandedOut {
    out: BTreeSet<u32>,
    used: BTreeSet<u32>,
}

impl HandedOut {
    /// Adds a run that was handed out just now: its pages were not, and had not been used if it is said to be zero.
    pub(in crate::page) fn add(&mut self, run: Extent, is_zero: bool) -> Result<(), TestCaseError> {
        for page in run.first.0..run.end().0 {
            prop_assert!(self.out.insert(page), "page {} is handed out twice", page);
            prop_assert!(!is_zero || !self.used.contains(&page), "page {} is not zero", page);
            self.used.insert(page);
        }
        Ok(())
    }

    /// Removes a run that is freed.
    pub(in crate::page) fn remove(&mut self, run: Extent) {
        (run.first.0..run.end().0).for_each(|page| assert!(self.out.remove(&page)));
    }

    /// Notes that all dirty memory was purged.
    pub(in crate::page) fn note_purge(&mut self) {
        self.used = self.out.clone();
    }

    /// Pages that are handed out.
    pub(in crate::page) fn n_out(&self) -> usize {
        self.out.len()
    }

    /// Pages that were used since the last purge.
    pub(in crate::page) fn n_used(&self) -> usize {
        self.used.len()
    }
}

/// Bytes that are free and have memory behind them.
pub(in crate::page) fn dirty_bytes(world: &World) -> u64 {
    world.shared.pages.stats().free_with_memory() << PAGE_BYTES_LOG2
}

/// Makes `n` MiB dirty; returns the heap that allocated and freed them.
pub(in crate::page) fn dirty_mib(world: &World, n: usize) -> Own<'_, Fake> {
    world.spend_early_purges();
    let heap = world.heap();
    let blocks: Vec<_> = (0..n).map(|_| heap.allocate(MIB, 1).start).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
    // They are in lists, most of them.
    let pages = &world.shared.pages;
    let mut state = pages.lock();
    let _ = pages.empty_freed(&mut state);
    drop(pages.purge_due(state, pages.now(), After::Other));
    heap
}

/// Lets calls that are held in the fake kernel go on, also if the test fails: a thread is waiting for that.
struct Release<'e>(&'e World);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.os().hold_slow_calls(false);
    }
}

/// Calls `meanwhile` while a thread that runs `call` is inside the kernel, until `meanwhile` ends or calls `hold_slow_calls(false)`.
pub(in crate::page) fn while_held<'e>(
    world: &'e World,
    call: impl FnOnce() + Send + 'e,
    meanwhile: impl for<'s> FnOnce(&'s std::thread::Scope<'s, 'e>),
) {
    world.os().hold_slow_calls(true);
    std::thread::scope(|scope| {
        let _release = Release(world);
        scope.spawn(call);
        while world.os().n_held_calls() == 0 {
            std::thread::yield_now();
        }
        meanwhile(scope);
    });
}

/// As [`while_held`], with a thread that purges.
pub(in crate::page) fn while_a_purge_is_held<'e>(
    world: &'e World,
    meanwhile: impl for<'s> FnOnce(&'s std::thread::Scope<'s, 'e>),
) {
    while_held(world, || _ = world.shared.pages.purge(), meanwhile);
}

/// Takes a run of `n` pages, as for a large block.
pub(in crate::page) fn take_run(world: &World, n: u32) -> OwnedRun {
    take(world, n, Kind::Large)
}

/// Takes a run of one page, as for a span.
pub(in crate::page) fn take_span(world: &World) -> OwnedRun {
    take(world, 1, Kind::Small)
}

fn take(world: &World, n: u32, kind: Kind) -> OwnedRun {
    let run = world.shared.pages.allocate(Pages(n), Pages(1), kind).expect("the fake kernel has memory");
    OwnedRun::taken(Extent::new(run.page, run.pages))
}

/// Takes a run of `n` pages, as for a large block that is going to grow by little.
pub(in crate::page) fn take_with_room(world: &World, n: u32) -> Option<Run> {
    world.shared.pages.allocate_with_growth_room(Pages(n).to_bytes(), Pages(n).to_bytes())
}

/// Of twelve runs of eight pages that are due eight are taken out together: no thread can use them meanwhile.
#[test]
fn at_most_four_mebibytes_are_taken_out_to_be_purged_at_once() {
    let world = World::hardened(4096, "off");
    let pages = &world.shared.pages;
    world.spend_early_purges();
    for [dirty, _wall] in [(); 12].map(|()| [8, 1].map(|n| take_run(&world, n))) {
        pages.free(dirty);
    }
    world.os().advance_ms(1000);
    let due = || _ = pages.purge_due_now();
    while_held(&world, due, |_| assert_eq!(pages.stats().purging_pages, 64));
    assert_eq!(dirty_bytes(&world), 0);
    world.check().unwrap();
}

/// Every option that changes how memory is taken or given back, with streams that have large blocks, and each failing call.
#[test]
fn under_every_option_and_failing_call_contents_and_invariants_hold() {
    let most_bytes = if cfg!(miri) { 200_000 } else { 9 * MIB };
    let mix = Mix { ids: 12, least_bytes: 0, most_bytes, most_align: 128 << 10, reallocations_percent: 40 };
    let stream = generate(mix, 0, if cfg!(miri) { 30 } else { 250 }, 11);
    for (index, value) in [
        (key::THP, "auto"),
        (key::THP, "on"),
        (key::THP, "off"),
        (key::PREFAULT, "touch"),
        (key::PREFAULT, "populate"),
        (key::PURGE, "free"),
        (key::DIRTY_MAX, "0"),
        (key::SPAN_SIZE, "128k"),
        (key::SPAN_SIZE, "256k"),
        (key::PROFILE, "realtime"),
        (key::PROFILE, "lean"),
        (key::PROFILE, "throughput"),
    ] {
        for fails in if cfg!(miri) { &[true][..] } else { &[false, true] } {
            let world = World::new(4096);
            world.os().give_huge_pages(HUGE_BYTES);
            world.set(index, value);
            let heap = world.heap();
            // Every call after the 20th fails: refused advice must not matter, and missing memory must be reported as null.
            let plan = Failure { nth_call: 20, errno: Errno::NOMEM, for_good: true };
            world.os().plan(fails.then_some(plan));
            let player = play(&stream, OneHeap { world: &world, heap }, 16);
            assert!(player.is_ok(), "{index}={value}, failing {fails}: {}", player.err().unwrap());
            world.os().plan(None);
            world.end(heap);
            world.check().unwrap();
        }
    }
}

#[test]
fn a_block_is_put_together_of_dirty_pages_and_the_free_ones_beside_them() {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1g");
    world.spend_early_purges();
    let heap = world.heap();
    for behind in [true, false] {
        let blocks: Vec<_> = (0..3).map(|_| heap.allocate(4 * MIB, 1).start).collect();
        // Clean beside dirty: one is purged, then its neighbour is freed.
        let (clean, dirty) = if behind { (1, 0) } else { (0, 1) };
        free(heap, blocks[clean]);
        world.shared.pages.purge();
        free(heap, blocks[dirty]);
        let block = heap.allocate(6 * MIB, 1);
        assert!((blocks[0]..blocks[2]).contains(&block.start), "{:?} is elsewhere: {blocks:?}", block.start);
        assert!(!block.zero);
        world.check().unwrap();
        free(heap, block.start);
        free(heap, blocks[2]);
        world.shared.pages.purge();
    }
    world.check().unwrap();
}

#[test]
fn metadata_is_storage_and_what_each_page_below_the_high_water_mark_has() {
    let world = World::new(4096);
    let pages = &world.shared.pages;
    assert_eq!(pages.metadata_bytes(), 0);
    assert!(pages.open().is_some());
    // A record, a bitmap and an entry of the page map.
    let of_pages = || u64::from(pages.inspect(|state| state.runs.high_water()).0) * (64 + 512 + 4);
    assert_eq!(pages.metadata_bytes(), of_pages());
    assert!(pages.metadata(1000).is_some() && pages.metadata(1).is_some());
    assert_eq!(pages.metadata_bytes(), of_pages() + 1024 + 64);
    assert!(pages.allocate(Pages(100), Pages(1), Kind::Large).is_some());
    assert_eq!(pages.metadata_bytes(), of_pages() + 1024 + 64);
}

#[test]
fn the_lock_is_held_from_before_a_fork_until_after_it() {
    let world = World::new(4096);
    let pages = &world.shared.pages;
    pages.lock_for_fork();
    assert!(pages.state.try_lock().is_none());
    // SAFETY: this thread took the lock in the line before the last.
    pages.unlock_after_fork(unsafe { Forker::new() });
    assert!(pages.state.try_lock().is_some());
}
