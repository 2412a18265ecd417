#![allow(unsafe_code)]
//! Every call of the kernel fails, in every micro workload: the n-th, once and from then on, fully and half-way.
//!
//! After it: every answer was null or a good block, live blocks have their contents, nothing was written where nothing is mapped, `check`
//! holds, and when all is freed and given back, the kernel has mapped what the books say.
//!
//! # Safety
//! Heaps and blocks are the play's, which runs in one thread.

use crate::config::key;
use crate::page::state::PageStats;
use crate::testing::World;
use crate::thread::heap::own::Own;
use crate::thread::{route, upkeep};
use freestone_base::units::PAGE_BYTES_LOG2;
use freestone_os::Errno;
use freestone_os::fake::{Failure, Fake};
use std::format;
use std::string::String;
use std::vec::Vec;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Every so many bytes of a block are written and looked at, and the last one.
const STEP: usize = 1000;

/// A block that the program holds.
#[derive(Clone, Copy)]
struct Block {
    start: *mut u8,
    bytes: usize,
    fill: u8,
}

impl Block {
    fn offsets(bytes: usize) -> impl Iterator<Item = usize> {
        (0..bytes).step_by(STEP).chain([bytes - 1])
    }

    fn fill(&self) {
        // SAFETY: the block is the play's.
        Self::offsets(self.bytes).for_each(|at| unsafe { self.start.add(at).write(self.fill) });
    }

    fn assert_intact(&self, bytes: usize) {
        // SAFETY: as above.
        let is_intact = Self::offsets(bytes.min(self.bytes))
            .filter(|at| at % STEP == 0)
            .all(|at| unsafe { self.start.add(at).read() } == self.fill);
        assert!(is_intact, "a block of {} bytes at {:?} has lost its contents", self.bytes, self.start);
    }
}

/// A workload under way.
struct Play<'w> {
    world: &'w World,
    heaps: Vec<Own<'w, Fake>>,
    blocks: Vec<Block>,
    n_blocks: usize,
}

impl<'w> Play<'w> {
    fn new(world: &'w World) -> Self {
        Self { world, heaps: Vec::new(), blocks: Vec::new(), n_blocks: 0 }
    }

    fn birth(&mut self) -> Option<Own<'w, Fake>> {
        let heap = self.world.try_heap()?;
        self.heaps.push(heap);
        Some(heap)
    }

    fn death(&mut self, heap: Own<'w, Fake>) {
        self.heaps.retain(|it| !core::ptr::eq(it.heap(), heap.heap()));
        // SAFETY: the heap is not used afterwards.
        unsafe { self.world.threads.death(heap) };
    }

    fn allocate(&mut self, heap: Own<'_, Fake>, bytes: usize, align: usize) {
        let block = heap.allocate(bytes, align);
        if block.start.is_null() {
            return;
        }
        assert!(block.start.addr().is_multiple_of(align));
        // SAFETY: the block was just handed out.
        let is_zero = || Block::offsets(bytes).all(|at| unsafe { block.start.add(at).read() } == 0);
        assert!(!block.zero || is_zero(), "memory said to be zero is not");
        self.n_blocks += 1;
        let block = Block { start: block.start, bytes, fill: self.n_blocks as u8 | 1 };
        block.fill();
        self.blocks.push(block);
    }

    fn resize(&mut self, heap: Own<'_, Fake>, at: usize, bytes: usize) {
        let Some(block) = self.blocks.get_mut(at) else { return };
        // SAFETY: the block is in use.
        let moved = unsafe { heap.reallocate(block.start, bytes, 1) };
        if moved.is_null() {
            return block.assert_intact(block.bytes);
        }
        block.start = moved;
        block.assert_intact(bytes);
        block.bytes = bytes;
        block.fill();
    }

    /// Frees every `nth` block.
    fn free(&mut self, heap: Own<'_, Fake>, nth: usize) {
        let mut at = 0;
        self.blocks.retain(|block| {
            at += 1;
            if at % nth != 0 {
                return true;
            }
            block.assert_intact(block.bytes);
            // SAFETY: the block is in use, and not any more.
            unsafe { heap.free(block.start) };
            false
        });
    }

    fn purge(&self) {
        self.heaps.iter().for_each(|heap| upkeep::flush_all(*heap));
        self.world.shared.pages.purge();
    }

    fn check(&self) {
        self.blocks.iter().for_each(|block| block.assert_intact(block.bytes));
        self.world.check().unwrap();
        assert!(self.world.os().is_untouched_outside(), "memory that is not mapped was written");
    }

    /// Frees and gives back everything, and compares the books with the kernel's, which has `left_over` bytes that nobody counts.
    fn end(mut self, left_over: usize) {
        if self.heaps.is_empty() && self.birth().is_none() {
            panic!("a failure is remembered for ever");
        }
        let heap = self.heaps[0];
        self.free(heap, 1);
        while let Some(heap) = self.heaps.last().copied() {
            self.death(heap);
        }
        self.purge();
        self.check();
        let pages = &self.world.shared.pages;
        let PageStats { small_pages, large_pages, dirty_pages, purging_pages, .. } = pages.stats();
        assert_eq!((small_pages, large_pages, dirty_pages, purging_pages), (0, 0, 0, 0), "something is lost");
        assert_eq!(self.world.os().committed_bytes() - left_over, mapped_bytes(self.world), "the books are wrong");
    }
}

/// Bytes that are mapped, as the page heap's counts tell.
fn mapped_bytes(world: &World) -> usize {
    let pages = &world.shared.pages;
    let stats = pages.stats();
    let in_runs = stats.metadata_pages + stats.free_with_memory() + stats.clean_pages;
    ((in_runs as usize) << PAGE_BYTES_LOG2) + pages.inspect(|state, _| state.committed.bytes())
}

type Workload = fn(&mut Play<'_>);

/// An option and its value, if a workload wants one.
type Setting = Option<(usize, &'static str)>;

fn small_blocks(play: &mut Play<'_>) {
    let Some(heap) = play.birth() else { return };
    (0..600).for_each(|at| play.allocate(heap, 16 + at * 7 % 3000, 1));
    play.free(heap, 2);
    (0..400).for_each(|at| play.allocate(heap, 16 + at * 11 % 900, 1));
    play.free(heap, 3);
}

fn large_blocks(play: &mut Play<'_>) {
    let Some(heap) = play.birth() else { return };
    for round in 0..3 {
        (0..8).for_each(|at| play.allocate(heap, 70 * KIB + at * 40 * KIB, 1));
        play.free(heap, 2 + round);
    }
}

/// Long enough for huge pages.
fn long_blocks(play: &mut Play<'_>) {
    let Some(heap) = play.birth() else { return };
    for _ in 0..2 {
        play.allocate(heap, 4 * MIB, 1);
        play.allocate(heap, 100 * KIB, 1);
        play.resize(heap, 0, 5 * MIB);
        play.free(heap, 1);
        (0..50).for_each(|_| play.allocate(heap, 2000, 1));
    }
}

/// Blocks grow in turn, each with others behind it; then they shrink.
fn growth(play: &mut Play<'_>) {
    let Some(heap) = play.birth() else { return };
    (0..3).for_each(|at| play.allocate(heap, 20 * KIB + at * 100 * KIB, 1));
    for step in 1..7 {
        (0..3).for_each(|at| play.resize(heap, at, (at + 1) * 40 * KIB * step * step / 4));
        play.allocate(heap, 70 * KIB, 1);
    }
    (0..3).for_each(|at| play.resize(heap, at, 100 * KIB + at));
    (0..3).for_each(|at| play.resize(heap, at, 100 + at));
}

fn aligned(play: &mut Play<'_>) {
    let Some(heap) = play.birth() else { return };
    for align_log2 in 4..22 {
        [1, 5000, 100 * KIB].into_iter().for_each(|bytes| play.allocate(heap, bytes, 1 << align_log2));
    }
    play.free(heap, 2);
}

/// Dirty memory becomes zero memory and is asked for again: whoever is told that it is zero looks.
fn zeroed(play: &mut Play<'_>) {
    let Some(heap) = play.birth() else { return };
    for _ in 0..3 {
        (0..4).for_each(|at| play.allocate(heap, 70 * KIB + at * 60 * KIB, 1));
        play.free(heap, 1);
        play.purge();
    }
}

fn explicit_heaps(play: &mut Play<'_>) {
    let Some(heap) = play.birth() else { return };
    for _ in 0..3 {
        let Some(explicit) = play.world.try_explicit_heap() else { return };
        let before = play.blocks.len();
        (0..200).for_each(|at| play.allocate(explicit.enter().own(), 16 + at * 5, 1));
        (0..4).for_each(|at| play.allocate(explicit.enter().own(), 90 * KIB + at * 100 * KIB, 1));
        play.blocks.truncate(before);
        play.allocate(heap, 200 * KIB, 1);
        // SAFETY: neither the heap nor its blocks are used any more.
        unsafe { play.world.threads.destroy(explicit) };
    }
}

fn purges(play: &mut Play<'_>) {
    let Some(heap) = play.birth() else { return };
    for round in 0..3 {
        (0..6).for_each(|_| play.allocate(heap, 200 * KIB, 1));
        (0..300).for_each(|_| play.allocate(heap, 1000, 1));
        play.free(heap, 2);
        play.world.os().advance_ms(600);
        play.world.shared.pages.tidy_now();
        if round > 0 {
            play.purge();
        }
    }
}

fn births_and_deaths(play: &mut Play<'_>) {
    for round in 0..6 {
        let (Some(first), Some(second)) = (play.birth(), play.birth()) else { continue };
        (0..150).for_each(|at| play.allocate(first, 16 + at * 13, 1));
        play.allocate(second, 300 * KIB, 1);
        play.free(second, 2);
        play.death(first);
        (0..50).for_each(|_| play.allocate(second, 48, 1));
        if round % 2 == 0 {
            play.death(second);
        }
    }
}

fn remote_frees(play: &mut Play<'_>) {
    let (Some(producer), Some(consumer)) = (play.birth(), play.birth()) else { return };
    for _ in 0..4 {
        (0..300).for_each(|at| play.allocate(producer, 16 + at % 5 * 100, 1));
        (0..3).for_each(|_| play.allocate(producer, 128 * KIB, 1));
        play.free(consumer, 1);
    }
    route::send_all(consumer);
}

/// As under `ulimit -v`: clean holes make way for longer blocks, and are mapped again.
fn little_address_space(play: &mut Play<'_>) {
    let Some(heap) = play.birth() else { return };
    (0..12).for_each(|_| play.allocate(heap, 250 * KIB, 1));
    play.free(heap, 2);
    play.purge();
    play.world.os().limit_committed(play.world.os().committed_bytes() + 256 * KIB);
    (0..2).for_each(|_| play.allocate(heap, 700 * KIB, 1));
    play.free(heap, 3);
    (0..8).for_each(|_| play.allocate(heap, 250 * KIB, 1));
}

/// A micro workload, and an option that changes how it has its memory.
const WORKLOADS: [(&str, Workload, Setting); 13] = [
    ("small blocks", small_blocks, None),
    ("large blocks", large_blocks, None),
    ("long blocks, huge pages", long_blocks, Some((key::THP, "auto"))),
    ("large blocks, touched", large_blocks, Some((key::PREFAULT, "populate"))),
    ("growth", growth, None),
    ("aligned", aligned, None),
    ("zeroed", zeroed, Some((key::DIRTY_MAX, "0"))),
    ("explicit heaps", explicit_heaps, None),
    ("purges", purges, None),
    ("purges, lazily", purges, Some((key::PURGE, "free"))),
    ("births and deaths", births_and_deaths, None),
    ("remote frees", remote_frees, Some((key::DIRTY_MAX, "0"))),
    ("little address space", little_address_space, None),
];

fn world_for(option: Setting) -> World {
    let world = World::new(4096);
    if let Some((index, value)) = option {
        world.set(index, value);
        if index == key::THP {
            world.os().give_huge_pages(2 * MIB);
        }
    }
    world
}

/// Plays a workload while the kernel fails as planned; says what went wrong.
fn play(workload: Workload, option: Setting, failure: Failure, half_way: bool) -> Result<(), String> {
    let case = || {
        let world = world_for(option);
        if half_way {
            world.os().plan_half_way(failure);
        } else {
            world.os().plan(Some(failure));
        }
        let mut play = Play::new(&world);
        workload(&mut play);
        play.check();
        world.os().plan(None);
        // A window that could not be opened, where not even what was mapped of it could be unmapped.
        let is_open = world.shared.pages.layout().n_pages > 0;
        play.end(if is_open { 0 } else { world.os().committed_bytes() });
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(case))
        .map_err(|_| format!("{failure:?}, half-way: {half_way}"))
}

#[test]
#[cfg_attr(miri, ignore = "thousands of worlds; the streams of `any/tests.rs` fail calls under miri")]
fn whatever_call_of_the_kernel_fails_the_heap_is_whole_and_nothing_is_lost() {
    let (mut n_cases, mut wrong) = (0, Vec::new());
    for (name, workload, option) in WORKLOADS {
        let world = world_for(option);
        world.os().plan(None);
        let mut whole = Play::new(&world);
        workload(&mut whole);
        let n_calls = world.os().n_calls();
        whole.end(0);
        for nth_call in 0..n_calls {
            for errno in [Errno::NOMEM, Errno::AGAIN, Errno::INVAL, Errno::FAULT] {
                for (for_good, half_way) in [(false, false), (false, true), (true, false), (true, true)] {
                    n_cases += 1;
                    let failure = Failure { nth_call, errno, for_good };
                    wrong.extend(play(workload, option, failure, half_way).err().map(|what| format!("{name}: {what}")));
                }
            }
            // Somebody else is in the way.
            n_cases += 1;
            let failure = Failure { nth_call, errno: Errno::EXIST, for_good: false };
            wrong.extend(play(workload, option, failure, true).err().map(|what| format!("{name}: {what}")));
        }
        std::println!("{name}: {n_calls} calls");
    }
    std::println!("{n_cases} cases of a failing call");
    assert!(wrong.is_empty(), "{} cases went wrong: {:#?}", wrong.len(), wrong.iter().take(20).collect::<Vec<_>>());
}
