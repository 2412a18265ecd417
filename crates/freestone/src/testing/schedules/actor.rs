//! What a thread of a scenario does.
#![allow(unsafe_code)]
//!
//! # Safety
//! A thread uses its own heap, and explicit heaps behind their gates; it takes a block out of what the program owns before it frees it.

use super::world::{Explicit, Seams, Stage};
use crate::size_class::class_of_aligned;
use crate::thread::free_block::FreeBlock;
use crate::thread::heap::own::Own;
use crate::thread::life::succession::Which;
use crate::thread::route;
use freestone_base::lock::Forker;
use freestone_base::sync::{scheduled, spin_hint};
use freestone_os::fake::Fake;
use freestone_testkit::ops::SplitMix;
use std::ptr::{self, NonNull};

/// The most explicit heaps that a program makes.
const HEAPS_MOST: usize = 6;

/// About the most bytes that the program holds: the address range is small.
const HELD_MOST: usize = 12 << 20;

/// What a thread can do. [`Seams`] says how often it does each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Allocate,
    Free,
    Reallocate,
    HandOver,
    Purge,
    PassTime,
    Reborn,
    MakeHeap,
    UseHeap,
    DeleteHeap,
    ForkInParent,
    ForkIntoChild,
}

/// A thread: its heap, and its source of random numbers.
struct Actor<'stage> {
    stage: &'stage Stage,
    heap: Own<'stage, Fake>,
    random: SplitMix,
}

/// What a thread does from its start to its end.
pub(super) fn live(stage: &Stage, seed: u64) {
    let mut actor = Actor { stage, heap: stage.world.next_heap(), random: SplitMix(seed) };
    if stage.seams == Seams::Limits {
        return actor.live_within_the_limit();
    }
    for _ in 0..stage.n_steps {
        let step = actor.draw();
        actor.take(step);
    }
    if actor.stage.is_child() {
        actor.stage.check("in the child, at its end");
    }
    // SAFETY: the heap is this thread's, and is not used again.
    unsafe { stage.world.threads.leave(actor.heap) };
}

impl Actor<'_> {
    fn draw(&mut self) -> Step {
        let has = |seams: &[Seams]| seams.contains(&self.stage.seams);
        let heaps = has(&[Seams::Heaps, Seams::Parents, Seams::Children, Seams::All]);
        let parents = has(&[Seams::Parents, Seams::All]);
        let children = has(&[Seams::Children, Seams::All]) && !self.stage.is_child();
        let weights = [
            (Step::Allocate, 40),
            (Step::Free, 40),
            (Step::Reallocate, 6),
            (Step::HandOver, 6),
            (Step::Purge, 2),
            (Step::PassTime, 8),
            (Step::Reborn, 3),
            (Step::MakeHeap, if heaps { 3 } else { 0 }),
            (Step::UseHeap, if heaps { 20 } else { 0 }),
            (Step::DeleteHeap, if heaps { 3 } else { 0 }),
            (Step::ForkInParent, if parents { 5 } else { 0 }),
            (Step::ForkIntoChild, if children { 2 } else { 0 }),
        ];
        let mut at = self.random.below(weights.iter().map(|(_, weight)| weight).sum());
        for (step, weight) in weights {
            if at < weight {
                return step;
            }
            at -= weight;
        }
        Step::Allocate
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Allocate => self.allocate(),
            Step::Free => self.free(),
            Step::Reallocate => self.reallocate(),
            Step::HandOver => route::send_all(self.heap),
            Step::Purge => {
                Which::All.empty(self.heap);
                self.stage.world.threads.purge(&self.stage.world.shared, Which::All);
            }
            Step::PassTime => {
                self.stage.world.os().advance_ms([1, 1, 5, 20, 2000][self.random.below(5)]);
                if self.random.below(2) == 0 {
                    self.stage.world.threads.end_spare(&self.stage.world.shared, Which::Expired);
                    let is_ending = || self.stage.n_here() == 1;
                    self.stage.world.threads.purge_inboxes(&self.stage.world.shared, Which::Expired, &is_ending);
                    self.stage.world.shared.release_in_spans();
                    self.stage.world.shared.pages.purge_due_now();
                }
            }
            Step::Reborn => {
                let threads = &self.stage.world.threads;
                if self.random.below(2) == 0 {
                    // SAFETY: the heap is this thread's, and is not used again.
                    unsafe { threads.end(self.heap) };
                } else {
                    // SAFETY: as above.
                    unsafe { threads.leave(self.heap) };
                }
                self.heap = self.stage.world.next_heap();
            }
            Step::MakeHeap => self.make_heap(),
            Step::UseHeap => self.use_heap(),
            Step::DeleteHeap => {
                let number = self.stage.owned().heaps.len();
                if number > 0 {
                    self.stage.delete_heap(self.random.below(number));
                }
            }
            Step::ForkInParent => self.fork_in_parent(),
            Step::ForkIntoChild => self.fork_into_child(),
        }
    }

    fn size(&mut self) -> usize {
        self.stage.sizes[self.random.below(self.stage.sizes.len())]
    }

    fn allocate(&mut self) {
        let bytes = self.size();
        if self.stage.owned().shadow.live_bytes() > HELD_MOST {
            return self.free();
        }
        for _ in 0..1 + self.random.below(6) {
            let start = self.heap.allocate(bytes, 1).start;
            let start = NonNull::new(start).expect("the address range has room for all of it");
            self.stage.handed_out(start, bytes, None);
        }
    }

    fn free(&mut self) {
        for _ in 0..1 + self.random.below(6) {
            let Some(block) = self.stage.take_block(&mut self.random) else { return };
            let bytes = block.bytes;
            // A watched heap would report that functions of C allocated the block.
            let may_drop = block.heap.is_none() && self.heap.watch().is_none() && self.random.below(3) == 0;
            match class_of_aligned(bytes, 1).filter(|_| may_drop) {
                // As Rust's `dealloc` does: by the layout, without looking up the owner.
                Some(class) => {
                    // SAFETY: the block was allocated for a size of this class, and the program gave it up.
                    let block = unsafe { FreeBlock::new(block.start.as_ptr(), class) };
                    if let Err(block) = self.heap.bins().try_push(block) {
                        // SAFETY: as above.
                        unsafe { self.heap.free_layout(block, bytes, 1) };
                    }
                }
                None => {
                    // SAFETY: the heap is this thread's.
                    let current = unsafe { self.heap.heap().as_current() };
                    let in_page = current.entry_of_block(block.start.as_ptr().addr());
                    // SAFETY: the program gave the block up, and its page has the entry.
                    let free = |(own, entry): (Own<'_, _>, _)| unsafe { own.free_remote(block.start.as_ptr(), entry) };
                    if !in_page.is_some_and(free) {
                        // SAFETY: as above.
                        unsafe { self.heap.free(block.start.as_ptr()) };
                    }
                }
            }
            self.stage.freed(block);
        }
    }

    fn reallocate(&mut self) {
        let bytes = self.size();
        let Some(block) = self.stage.take_block(&mut self.random) else { return };
        // SAFETY: as in `free`.
        let moved = unsafe { self.heap.reallocate(block.start.as_ptr(), bytes, 1) };
        self.stage.freed(block);
        let moved = NonNull::new(moved).expect("the address range has room for all of it");
        // A block that does not move still belongs to its heap.
        let heap = block.heap.filter(|_| moved == block.start);
        self.stage.handed_out(moved, bytes, heap);
    }

    fn make_heap(&mut self) {
        if self.stage.owned().heaps.len() < HEAPS_MOST {
            let record = ptr::from_ref(self.stage.world.explicit_heap());
            let heap = Explicit { record, n_busy: 0, is_deleted: false, is_entered: false };
            self.stage.owned().heaps.push(heap);
        }
    }

    fn use_heap(&mut self) {
        if self.stage.owned().shadow.live_bytes() > HELD_MOST {
            return self.free();
        }
        let Some(number) = self.stage.owned().use_heap(&mut self.random) else { return };
        let record = self.stage.owned().heaps[number].record;
        let bytes = self.size();
        // SAFETY: the heap is alive: it is not deleted while a thread uses it.
        let record = unsafe { &*record };
        for _ in 0..1 + self.random.below(4) {
            let entered_heap = record.enter();
            let entered = core::mem::replace(&mut self.stage.owned().heaps[number].is_entered, true);
            assert!(!entered, "two threads are behind the gate of one heap");
            let start = entered_heap.own().allocate(bytes, 1).start;
            self.stage.owned().heaps[number].is_entered = false;
            drop(entered_heap);
            let start = NonNull::new(start).expect("the address range has room for all of it");
            self.stage.handed_out(start, bytes, Some(number));
        }
        self.stage.owned().heaps[number].n_busy -= 1;
    }

    fn fork_in_parent(&mut self) {
        self.stage.lock_for_fork();
        scheduled::let_others_run();
        // SAFETY: this thread took the locks above, and holds no guard.
        self.stage.unlock_after_fork(unsafe { Forker::new() });
    }

    /// Goes on as the child of a fork: all other threads vanish, wherever they are outside the locks.
    fn fork_into_child(&mut self) {
        let (stage, world) = (self.stage, &self.stage.world);
        stage.lock_for_fork();
        scheduled::fork_alone();
        while stage.n_here() > 1 {
            spin_hint();
        }
        stage.become_child();
        // SAFETY: this thread took the locks above, and holds no guard.
        stage.unlock_after_fork(unsafe { Forker::new() });
        world.shared.pages.adopt_purging_in_child(true);
        // SAFETY: all other threads have vanished, the heap is this thread's, and no lock is held.
        unsafe { world.threads.orphan_others(Some(self.heap)) };
        stage.check("in the child, at its start");
    }

    /// Holds at most one block at a time, as the other thread does: the limit has room for both, and for the heap's metadata.
    fn live_within_the_limit(&mut self) {
        for _ in 0..self.stage.n_steps {
            let bytes = self.size();
            let start = self.heap.allocate(bytes, 1).start;
            let start = NonNull::new(start).unwrap_or_else(|| panic!("{bytes} bytes refused with room for them"));
            self.stage.handed_out(start, bytes, None);
            let block = {
                let mut owned = self.stage.owned();
                let at = owned.blocks.iter().position(|block| block.start == start).expect("it is there");
                let block = owned.blocks.swap_remove(at);
                owned.give_back(block);
                block
            };
            // SAFETY: the program gave the block up; the heap is this thread's.
            unsafe { self.heap.free(block.start.as_ptr()) };
            if self.random.below(4) == 0 {
                self.stage.world.os().advance_ms(3);
            }
        }
        // SAFETY: the heap is this thread's, and is not used again.
        unsafe { self.stage.world.threads.end(self.heap) };
    }
}
