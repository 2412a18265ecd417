//! Which allocations the heap profile samples, without an instruction in the hot paths.
//!
//! Each small block that is allocated came into its bin before, once: freed, or in a batch. So as good as every so many-th allocation is every so many-th
//! block that comes into the bin: a countdown, drawn after each, says which is *chosen*. The allocation that would take a chosen block from the bin is sampled.
//!
//! ```text
//!  free ─▶ counts down the bin's room, which ends with the block that is chosen     that free takes the slow path and chooses its block
//!  batch ─▶ counted in the slow path that brings it                                  chooses among its blocks
//!
//!  bin ─▶ block ─▶ block ─▶ chosen ─▶ block ─▶ end
//!                        └── a link that the hot path does not follow: the slow path samples, and the block stays, as if it had come just now
//! ```
//!
//! Whether a block is chosen depends on nothing that the program does, and nothing that the heap does meanwhile depends on that: a bin has its room and its
//! batches as without a profile, is flushed as then, and hands the same blocks out in the same order. So each allocation is sampled with the same chance,
//! and independently of all others, and estimates are right on average (`docs/decisions/0047-what-a-sample-costs.md`). An allocation that takes no block of the bin
//! counts as a block that comes and goes: all those of a watched heap, and one that is guarded. Large blocks count down in bytes.
//!
//! Room that is not given yet is withdrawn: where the room ends at a chosen block, the bin gets the next part, which is all that such a free does beside
//! choosing.
//!
//! A sampled small block comes from a heap of its own, an explicit one: no thread owns it, so each free of it leaves the hot path, and is handed over to
//! that heap at once, as those of all explicit heaps are. It counts as allocated by the heap that it was allocated for. A sampled large block has a mark in its record.
//!
//! **Rust.** The free of Rust's global allocator trusts the layout and puts a block into a bin without a look, if there is room. So where it allocates while
//! the profile is on, bins get no room that the hot paths see: each free takes the slow path, which looks, and then uses the room that was withheld.
//! This has to begin before any block is freed: with the option `heap_profile=on`. Otherwise small blocks of that allocator are not sampled.
//!
//! Not sampled are blocks of explicit heaps, and what a thread allocates while another, or a signal handler that interrupted it there, is in the heap
//! of sampled blocks (counted as lost).

use crate::heap_profile::live_table::Sample;
use crate::heap_profile::recorder::FRAMES_MOST;
use crate::heap_profile::stack_table::StackIndex;
use crate::shared::Shared;
use crate::span::family::Family;
use crate::span::{Entry, Generation, PageIndex, Span};
use crate::thread::explicit::sampled_heap;
use crate::thread::free_block::FreeBlock;
use crate::thread::gated::Entered;
use crate::thread::heap::own::Own;
use crate::thread::new_block::NewBlock;
use crate::thread::route;
use crate::thread::watched::request::Request;
use freestone_base::sync::spin_hint;
use freestone_os::Os;
use freestone_os::stack::{Registers, Stack};

mod choosing;
use choosing::{chooses, countdowns, random};
pub(super) use choosing::{
    count_batch, count_free_beside, count_put, ends_at_chosen, grant, is_far, room_ended, settle, whole_room,
};

/// Whether allocations are sampled, or were and their frees are to be noticed: all that slow paths pay if not.
#[inline(always)]
pub(super) fn is_asked<O: Os>(own: Own<'_, O>) -> bool {
    own.shared().profile.is_asked()
}

/// Whether the first block of a class's bin is chosen.
#[inline(always)]
pub(super) fn finds_chosen<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    is_asked(own) && own.bins().is_first_chosen(class, || own.renew_view())
}

/// A sampled block, if the first block of the class's bin is chosen, which it is no more then. `takes_none`: the allocation will take no block of the bin.
#[inline(never)]
pub(super) fn sample<O: Os>(own: Own<'_, O>, class: usize, request: &Request, takes_none: bool) -> Option<NewBlock> {
    let takes = request.family != Family::Rust || own.watch().is_some() || own.shared().profile.meet_rust();
    let is_chosen = if takes_none { chooses(own, class) } else { finds_chosen(own, class) };
    if !is_chosen {
        return None;
    }
    if !takes_none {
        own.bins().unchoose_first(class);
    }
    if !takes || !own.shared().profile.is_on() {
        return None;
    }
    let block = allocate(own, class, request)?;
    if !takes_none {
        // The block that was chosen stays, for another allocation: it comes anew.
        count_put(own, class);
    }
    Some(block)
}

/// Allocates a block of the heap of sampled blocks, and records it.
#[inline(always)]
fn allocate<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<NewBlock> {
    let profile = &own.shared().profile;
    if !profile.has_room() {
        return None;
    }
    let at = Registers::here();
    let own_stack = &own.heap().profile_countdowns().own_stack;
    let hash = at.and_then(|at| Stack::<FRAMES_MOST>::known_hash(&at, own_stack));
    // First of all: a block that is not recorded would be looked for when it is freed.
    let stack = hash.and_then(|hash| profile.find_stack(hash)).or_else(|| add_stack(own, at))?;
    let Some(entered) = enter(own.shared()) else {
        profile.count_dropped();
        return None;
    };
    let heap = entered.own();
    // A watched heap's bins are empty.
    let start = heap.bins().pop(class);
    let block = if start.is_null() { heap.allocate_for(*request) } else { NewBlock { start, zero: false } };
    if block.start.is_null() {
        return None;
    }
    // Its free counts for the heap that frees it, so this counts for the heap that it is for.
    heap.bins().uncount_alloc(class);
    drop(entered);
    own.bins().count_single_alloc(class);
    profile.record_small(block.start.addr(), stack, class);
    Some(block)
}

/// Adds the stack of a function that has these registers, and has not returned.
#[cold]
#[inline(never)]
fn add_stack<O: Os>(own: Own<'_, O>, at: Option<Registers>) -> Option<StackIndex> {
    let mut stack = Stack::<FRAMES_MOST>::EMPTY;
    let hash = at.and_then(|at| stack.take_own(at, &own.heap().profile_countdowns().own_stack));
    own.shared().profile.add_stack(stack.addresses(), hash)
}

/// Frees a small block of Rust's global allocator if its frees are noticed: forgets it if it was sampled, and puts it into its bin otherwise.
///
/// # Errors
/// The block, if it was sampled, or the slow path has to check the bin.
#[inline]
pub(super) fn free_of_rust<O: Os>(own: Own<'_, O>, block: FreeBlock) -> Result<(), FreeBlock> {
    if !own.shared().profile.notices_rust() {
        return Err(block);
    }
    let entry = own.renew_view().entry(block.address()).unwrap_or(Entry::NONE);
    if is_sampled(own, entry.generation()) { Err(block) } else { own.bins().push_withheld(block) }
}

/// Whether blocks of this owner were sampled.
#[inline(always)]
pub(super) fn is_sampled<O: Os>(own: Own<'_, O>, generation: Generation) -> bool {
    generation.is_explicit() && own.shared().profile.is_generation(generation.number())
}

/// Counts a large block with this record that was just handed out, and samples it if it is due.
#[inline(always)]
pub(super) fn count_large<O: Os>(own: Own<'_, O>, page: PageIndex, record: &Span) {
    if is_asked(own) {
        count_large_slow(own, page, record);
    }
}

#[cold]
fn count_large_slow<O: Os>(own: Own<'_, O>, page: PageIndex, record: &Span) {
    let bytes = record.n_pages().to_bytes().0;
    let Some((profile, countdowns)) = countdowns(own) else { return };
    let left = countdowns.large.get() - bytes as i64;
    countdowns.large.set(left);
    if left >= 0 {
        return;
    }
    countdowns.large.set(profile.bytes_until(random(own)));
    let mut stack = Stack::<FRAMES_MOST>::EMPTY;
    stack.take_here(&own.heap().profile_countdowns().own_stack);
    if profile.has_room() && profile.record_large(own.layout().page_start(page).addr(), stack.addresses(), bytes) {
        record.is_sampled.set(true);
    }
}

/// Frees a sampled block, which was forgotten: counts the free, and hands the block over to the heap of sampled blocks.
pub(super) fn give_back<O: Os + 'static>(own: Own<'_, O>, block: FreeBlock) {
    own.bins().count_remote_frees(block.class(), 1);
    let heap = sampled_heap(own.shared()).map(|heap| heap.gated().heap().mailbox());
    let refused = match heap {
        Some(mailbox) if own.watch().is_none() => own.remote().hand_one_over(mailbox, block).err(),
        _ => Some(block),
    };
    if let Some(block) = refused {
        route::route(own, block);
    }
}

/// Forgets a small block that is freed, of this owner, if it was sampled. Before the block can be handed out again.
#[inline(always)]
pub(super) fn forget_small<O: Os>(own: Own<'_, O>, generation: Generation, address: usize) {
    if is_sampled(own, generation) {
        own.shared().profile.forget(address);
    }
}

/// Forgets the large block that starts at `page` and is freed, if it was sampled. Before the block can be handed out again.
#[inline(always)]
pub(super) fn forget_large<O: Os>(own: Own<'_, O>, page: PageIndex, record: &Span) {
    if record.is_sampled.replace(false) {
        own.shared().profile.forget(own.layout().page_start(page).addr());
    }
}

/// Takes the sample of the large block that starts at `page` out of the profile, if it was sampled.
pub(super) fn take_large<O: Os>(own: Own<'_, O>, page: PageIndex, record: &Span) -> Option<Sample> {
    let is_sampled = record.is_sampled.replace(false);
    is_sampled.then(|| own.shared().profile.take(own.layout().page_start(page).addr())).flatten()
}

/// Puts a sample back that was taken out of the profile: its block stays.
pub(super) fn put_large_back<O: Os>(own: Own<'_, O>, page: PageIndex, record: &Span, sample: Option<Sample>) {
    if let Some(sample) = sample {
        let is_kept = own.shared().profile.put_back(own.layout().page_start(page).addr(), sample);
        record.is_sampled.set(is_kept);
    }
}

/// Enters the heap of sampled blocks, unless it stays busy: the thread that is in it may be this one, which a signal interrupted there.
fn enter<O: Os + 'static>(shared: &Shared<O>) -> Option<Entered<'_, O>> {
    /// What another thread does there takes some hundreds of instructions.
    const TRIES: u32 = 200;
    let heap = sampled_heap(shared)?;
    for _ in 0..TRIES {
        match heap.try_enter() {
            None => spin_hint(),
            entered => return entered,
        }
    }
    None
}

#[cfg(test)]
mod tests;
