//! What the threads of a scenario share, and what the program owns: the shadow.
#![allow(unsafe_code)]
//!
//! Invariants of the program that the threads play: a block is freed once, by the thread that took it out of `blocks`; a heap is deleted when all
//! its blocks were taken out and no thread is using it or freeing one of them.
//!
//! # Safety
//! Blocks are read and written by the shadow for their requested sizes.

use crate::check::check;
use crate::config::key;
use crate::page::runs::Extent;
use crate::span::{Kind, PageIndex};
use crate::testing::{World, span_at};
use crate::thread::explicit::ExplicitHeap;
use crate::thread::heap::ThreadHeap;
use crate::thread::life::succession::Which;
use crate::thread::sharing::FEW_THREADS;
use freestone_base::lock::{Forker, Lock};
use freestone_os::Futex;
use freestone_os::fake::Fake;
use freestone_testkit::ops::{Shadow, SplitMix};
use std::cell::Cell;
use std::format;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

/// Which seams of the heap a scenario drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seams {
    /// Starts and ends of threads, remote frees, ticks, purges.
    Threads,
    /// And explicit heaps.
    Heaps,
    /// And forks, seen from the parent.
    Parents,
    /// And a fork, seen from the child.
    Children,
    /// Large blocks alone, just within the hard limit.
    Limits,
    /// All but the last.
    All,
}

/// A block that the program owns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) start: NonNull<u8>,
    pub(super) bytes: usize,
    /// The explicit heap it was allocated from.
    pub(super) heap: Option<usize>,
}

// SAFETY: a block belongs to the thread that has it.
unsafe impl Send for Block {}

/// An explicit heap of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Explicit {
    pub(super) record: *const ExplicitHeap<Fake>,
    /// Threads that are allocating from it, or freeing a block of it.
    pub(super) n_busy: u32,
    /// A thread is deleting it, or has.
    pub(super) is_deleted: bool,
    /// A thread is behind its gate.
    pub(super) is_entered: bool,
}

// SAFETY: records are never unmapped while the world lives.
unsafe impl Send for Explicit {}

/// What the program owns.
#[derive(Debug, Default)]
pub(super) struct Owned {
    pub(super) shadow: Shadow,
    pub(super) blocks: Vec<Block>,
    pub(super) heaps: Vec<Explicit>,
}

/// A world and the program in it.
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) seams: Seams,
    pub(super) n_threads: usize,
    pub(super) n_steps: usize,
    /// Sizes that threads request.
    pub(super) sizes: Vec<usize>,
    /// Heaps of threads that wait all the time: with them there are many threads.
    waiting: Vec<*const ThreadHeap<Fake>>,
    owned: Mutex<Owned>,
    /// Queues threads that fork, as the lock of `api::pressure` does.
    forks: Lock<(), Futex, 5>,
    here: Cell<usize>,
    /// Whether this is a forked child, where only one thread exists and the blocks of the others are lost.
    is_child: Cell<bool>,
}

// SAFETY: all threads of a model run on one thread of the operating system.
unsafe impl Sync for Stage {}
// SAFETY: as above.
unsafe impl Send for Stage {}

impl Stage {
    /// Draws a world.
    pub(super) fn draw(seams: Seams, random: &mut SplitMix) -> Self {
        let world = World::new([4096, 16384][random.below(2)]);
        let level = ["checks", "full", "default", "default"][random.below(4)];
        if seams != Seams::Limits {
            world.set(key::HARDEN, level);
        }
        let n_threads = if seams == Seams::Limits { 2 } else { 2 + random.below(3) };
        let pick = |random: &mut SplitMix, values: &[&'static str]| values[random.below(values.len())];
        world.set(key::DECAY_MS, pick(random, &["0", "1", "1", "10", "1000"]));
        world.set(key::DIRTY_MAX, pick(random, &["0", "256k", "16m"]));
        world.set(key::BIN_MAX, pick(random, &["1", "4", "64", "4096"]));
        if random.below(4) == 0 {
            world.set(key::PURGE, "free");
        }
        let mut sizes: Vec<_> = if seams == Seams::Limits {
            // The limit has room for one block of each thread (see `actor`), and for the heap's metadata. A purge under way may be of more
            // memory than one block has, if blocks are small: then an allocation has to wait for it. Guards keep freed blocks apart, so that no
            // purge is of more than one.
            world.set(key::HARDEN, pick(random, &["off", "default"]));
            world.set(key::DIRTY_MAX, pick(random, &["0", "256k"]));
            let (limit, sizes) = [("7m", &[1 << 20, 2 << 20, 3 << 20][..]), ("2560k", &[1 << 20])][random.below(2)];
            world.set(key::LIMIT_HARD, limit);
            sizes.to_vec()
        } else {
            // Few classes, so that threads meet in one; those of few blocks a span, so that spans are made and freed.
            let all = [16, 48, 512, 1024, 4000, 8000, 16_000, 30_000, 70_000, 200_000, 1 << 20];
            (0..1 + random.below(4)).map(|_| all[random.below(all.len())]).collect()
        };
        sizes.dedup();
        let n_steps = 10 + random.below(60);
        let n_waiting = if seams == Seams::Limits { 0 } else { [0, FEW_THREADS][random.below(2)] };
        let waiting = (0..n_waiting).map(|_| core::ptr::from_ref(world.heap().heap())).collect();
        Self {
            world,
            seams,
            n_threads,
            n_steps,
            sizes,
            waiting,
            owned: Mutex::default(),
            forks: Lock::new(()),
            here: Cell::new(n_threads),
            is_child: Cell::new(false),
        }
    }

    /// What the program owns. The caller must not call the heap while it holds the guard.
    pub(super) fn owned(&self) -> MutexGuard<'_, Owned> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a thread is gone.
    pub(super) fn left(&self) {
        self.here.set(self.here.get() - 1);
    }

    /// Threads there are.
    pub(super) fn n_here(&self) -> usize {
        self.here.get()
    }

    /// In a forked child: releases what threads that do not exist there were using.
    pub(super) fn become_child(&self) {
        self.is_child.set(true);
        self.owned().heaps.iter_mut().for_each(|heap| heap.n_busy = 0);
    }

    /// Whether this is a forked child.
    pub(super) fn is_child(&self) -> bool {
        self.is_child.get()
    }

    /// As `api::fork` does before a fork.
    pub(super) fn lock_for_fork(&self) {
        self.forks.acquire_raw();
        Futex::begin_fork();
        self.world.threads.lock_for_fork();
        self.world.shared.lock_for_fork();
    }

    /// As `api::fork` does after it.
    pub(super) fn unlock_after_fork(&self, forker: Forker) {
        self.world.shared.unlock_after_fork(forker);
        self.world.threads.unlock_after_fork(forker);
        Futex::end_fork();
        self.forks.release_raw(forker);
    }

    /// A block was handed out.
    pub(super) fn handed_out(&self, start: NonNull<u8>, bytes: usize, heap: Option<usize>) {
        let mut owned = self.owned();
        owned.shadow.handed_out(start, bytes, 1).unwrap_or_else(|violation| panic!("{violation}"));
        owned.blocks.push(Block { start, bytes, heap });
    }

    /// Takes out a block of the program's to be freed, if there is one of a heap that no thread is deleting.
    pub(super) fn take_block(&self, random: &mut SplitMix) -> Option<Block> {
        let mut owned = self.owned();
        let n = owned.blocks.len();
        let at = if n == 0 { return None } else { random.below(n) };
        let block = owned.blocks.swap_remove(at);
        owned.give_back(block);
        if let Some(heap) = block.heap {
            owned.heaps[heap].n_busy += 1;
        }
        Some(block)
    }

    /// A block that was taken is freed.
    pub(super) fn freed(&self, block: Block) {
        if let Some(heap) = block.heap {
            self.owned().heaps[heap].n_busy -= 1;
        }
    }

    /// The end, with no thread there any more: everything is freed and every heap ends, and nothing is left.
    pub(super) fn settle(&self) {
        let (world, own) = (&self.world, self.world.heap());
        let n_heaps = self.owned().heaps.len();
        for number in 0..n_heaps {
            self.delete_heap(number);
        }
        let mut random = SplitMix(0);
        while let Some(block) = self.take_block(&mut random) {
            // SAFETY: the block is the program's, which gives it up.
            unsafe { own.free(block.start.as_ptr()) };
        }
        // SAFETY: the heap is this thread's, and used no more.
        unsafe { world.threads.end(own) };
        world.threads.end_spare(&world.shared, Which::All);
        if self.is_child() {
            return;
        }
        for &heap in &self.waiting {
            // SAFETY: records are never unmapped while the world lives.
            let heap = unsafe { &*heap };
            // SAFETY: no thread has used the heap, and none will.
            unsafe { world.threads.end(heap.as_own(None)) };
        }
        self.check("at the end");
        // What is in lists of freed runs is nobody's.
        world.shared.pages.purge();
        let left = world.shared.pages.inspect(|state| {
            state.runs.iter().find_map(|(run, span)| match span.kind.get() {
                Kind::Small => {
                    Some(format!("{} blocks of the span at page {} were never returned", span.n_out.get(), run.first))
                }
                Kind::Large => Some(format!("the large block at page {} has no owner", run.first)),
                _ => None,
            })
        });
        assert!(left.is_none(), "{}", left.unwrap_or_default());
        assert_eq!(world.threads.n_alive(), 0);
    }

    /// Every invariant of the heap, when no thread is inside.
    pub(super) fn check(&self, when: &str) {
        // SAFETY: no thread is inside the allocator.
        if let Err(broken) = unsafe { check(&self.world.shared, &self.world.threads) } {
            panic!("{when}: {broken:?}: {:?}", span_at(&self.world, broken.page).record());
        }
        let closed = self.world.shared.pages.inspect(|state| {
            let in_use = state.runs.iter().filter(|(_, span)| matches!(span.kind.get(), Kind::Small | Kind::Large));
            in_use.map(|(run, _)| run).find(|run| self.is_closed(*run))
        });
        assert_eq!(closed, None, "{when}: a run that counts as in use cannot be accessed");
    }

    /// Whether the kernel lets nobody access some page of a run.
    fn is_closed(&self, run: Extent) -> bool {
        let mut pages = (run.first.0..run.end().0).map(PageIndex);
        pages.any(|page| self.world.os().is_guarded(self.world.shared.pages.layout().page_start(page)))
    }

    /// Deletes an explicit heap, with what is left in it, once no thread is using it; unless another thread deletes it.
    pub(super) fn delete_heap(&self, number: usize) {
        let record = {
            let mut owned = self.owned();
            if core::mem::replace(&mut owned.heaps[number].is_deleted, true) {
                return;
            }
            let (with_it, rest): (Vec<_>, Vec<_>) = owned.blocks.iter().partition(|block| block.heap == Some(number));
            owned.blocks = rest;
            with_it.into_iter().for_each(|block| owned.give_back(block));
            owned.heaps[number].record
        };
        while self.owned().heaps[number].n_busy > 0 {
            freestone_base::sync::spin_hint();
        }
        let mut late: Vec<Block> = Vec::new();
        {
            // What was allocated while we waited goes with it, too.
            let mut owned = self.owned();
            let (with_it, rest): (Vec<_>, Vec<_>) = owned.blocks.iter().partition(|block| block.heap == Some(number));
            owned.blocks = rest;
            late.extend(with_it);
            late.iter().for_each(|block| owned.give_back(*block));
        }
        // SAFETY: no block of the heap is used any more, and no other thread uses the heap.
        let heap = unsafe { &*record };
        // SAFETY: as above.
        unsafe { self.world.threads.destroy(heap) };
    }
}

impl Owned {
    /// The program gives a block up, after its contents are checked.
    pub(super) fn give_back(&mut self, block: Block) {
        self.shadow.giving_back(block.start).unwrap_or_else(|violation| panic!("{violation}"));
    }

    /// An explicit heap that no thread is deleting; counts the caller among its users.
    pub(super) fn use_heap(&mut self, random: &mut SplitMix) -> Option<usize> {
        let alive: Vec<_> = (0..self.heaps.len()).filter(|at| !self.heaps[*at].is_deleted).collect();
        let number = if alive.is_empty() { return None } else { alive[random.below(alive.len())] };
        self.heaps[number].n_busy += 1;
        Some(number)
    }
}
