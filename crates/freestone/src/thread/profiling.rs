//! Which allocations the heap profile samples, without an instruction in the hot paths.
//!
//! Each class counts its allocations anyway. A countdown, drawn after each sample, says which is sampled next. The hot paths take a slow path before
//! they can pass it:
//!
//! ```text
//!  hot paths can allocate    what the bin has + what is freed into it before its room runs out    ≤    what is left of the countdown
//!
//!  bin ─▶ block ─▶ block ─▶ end      aside ─▶ block ─▶ … ─▶ end
//!         └── a part of what is left      └── the rest, until the bin runs empty
//! ```
//!
//! Room that is not given is withdrawn: when the bin's room runs out, it gets the next part, which is all that such a free does; and all of it after the sample.
//! With so many allocations left, some eight blocks stay at most while frees and allocations take turns: the way to a sample is a handful of slow paths, mostly
//! for its last sixteen allocations (`docs/decisions/0047-what-a-sample-costs.md`).
//!
//! So each sample is exactly the one that its countdown chose, and estimates are right on average. Large blocks count down in bytes.
//!
//! A sampled small block comes from a heap of its own, an explicit one: no thread owns it, so each free of it leaves the hot path, and is handed over to
//! that heap at once, as those of all explicit heaps are. A sampled large block has a mark in its record.
//!
//! **Rust.** The free of Rust's global allocator trusts the layout and puts a block into a bin without a look, if there is room. So where it allocates while
//! the profile is on, bins get no room that the hot paths see: each free takes the slow path, which looks, and then uses the room that was withheld.
//! This has to begin before any block is freed: with the option `heap_profile=on`. Otherwise small blocks of that allocator are not sampled.
//!
//! Not sampled are blocks of explicit heaps, and what a thread allocates while another, or a signal handler that interrupted it there, is in the heap
//! of sampled blocks (counted as lost).

use crate::heap_profile::live_table::Sample;
use crate::heap_profile::recorder::{FRAMES_MOST, HeapProfile};
use crate::shared::Shared;
use crate::size_class::block_bytes;
use crate::span::family::Family;
use crate::span::{Entry, Generation, PageIndex, Span};
use crate::thread::explicit::sampled_heap;
use crate::thread::free_block::FreeBlock;
use crate::thread::gated::Entered;
use crate::thread::heap::own::Own;
use crate::thread::new_block::NewBlock;
use crate::thread::profile_countdowns::ProfileCountdowns;
use crate::thread::route;
use crate::thread::watched::request::Request;
use freestone_base::sync::spin_hint;
use freestone_os::Os;
use freestone_os::stack::Stack;

/// Whether allocations are sampled, or were and their frees are to be noticed: all that slow paths pay if not.
#[inline(always)]
pub(super) fn is_asked<O: Os>(own: Own<'_, O>) -> bool {
    own.shared().profile.is_asked()
}

/// Whether the hot paths cannot reach the next sample of a class with the blocks in its bin and the frees that it has room for. `false` if that takes a
/// closer look.
#[inline(always)]
pub(super) fn is_far<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    let (profile, countdowns) = (&own.shared().profile, own.heap().profile_countdowns());
    own.bins().allocs_within_reach(class) < countdowns.at[class].get()
        && countdowns.session.get() == profile.session()
        && !profile.notices_rust()
}

/// The profile and the heap's countdowns, those of this session; `None` if the heap's blocks are not sampled.
#[inline(always)]
fn countdowns<O: Os>(own: Own<'_, O>) -> Option<(&HeapProfile, &ProfileCountdowns)> {
    let (profile, countdowns) = (&own.shared().profile, own.heap().profile_countdowns());
    if !profile.is_on() || own.holdings().is_some() {
        return None;
    }
    if countdowns.session.get() != profile.session() {
        begin_session(own, profile, countdowns);
    }
    Some((profile, countdowns))
}

#[cold]
fn begin_session<O: Os>(own: Own<'_, O>, profile: &HeapProfile, countdowns: &ProfileCountdowns) {
    countdowns.session.set(profile.session());
    countdowns.at.iter().for_each(|at| at.set(0));
    countdowns.withdrawn.iter().for_each(|withdrawn| withdrawn.set(0));
    countdowns.large.set(profile.bytes_until(random(own)));
}

fn random<O: Os>(own: Own<'_, O>) -> u64 {
    own.shared().random.draw(|| own.shared().os().random())
}

/// Allocations of a class before the next sampled one; `None` if none is.
#[inline(always)]
pub(super) fn left<O: Os>(own: Own<'_, O>, class: usize) -> Option<u64> {
    let (_, countdowns) = countdowns(own)?;
    let at = match countdowns.at[class].get() {
        0 => draw(own, class)?,
        at => at,
    };
    let before = if own.watch().is_some() { 0 } else { own.bins().allocs(class) };
    Some((at - 1).saturating_sub(before))
}

/// Draws the next countdown of a class. Returns the count at which it ends.
#[inline(never)]
fn draw<O: Os>(own: Own<'_, O>, class: usize) -> Option<u64> {
    let (profile, countdowns) = countdowns(own)?;
    let before = if own.watch().is_some() { 0 } else { own.bins().allocs(class) };
    let at = before + profile.allocations_until(block_bytes(class), random(own));
    countdowns.at[class].set(at);
    Some(at)
}

/// A sampled block, if the allocation is due to be one.
///
/// Inlined: each function less is a frame less in every stack.
#[inline(always)]
pub(super) fn sample<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<NewBlock> {
    let takes = request.family != Family::Rust || own.watch().is_some() || own.shared().profile.meet_rust();
    let left = left(own, class)?;
    let at = &own.heap().profile_countdowns().at[class];
    if left > 0 {
        if own.watch().is_some() {
            at.set(left);
        }
        return None;
    }
    draw(own, class);
    let block = if takes { allocate(own, class, request) } else { None };
    if block.is_none() {
        // This allocation is not sampled, so it is not the one that the new countdown chose.
        at.set(at.get() + 1);
    }
    block
}

/// Allocates a block of the heap of sampled blocks, and records it.
#[inline(always)]
fn allocate<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<NewBlock> {
    let profile = &own.shared().profile;
    if !profile.has_room() {
        return None;
    }
    let mut stack = Stack::<FRAMES_MOST>::EMPTY;
    stack.take_here(&own.heap().profile_countdowns().own_stack);
    let Some(entered) = enter(own.shared()) else {
        profile.count_dropped();
        return None;
    };
    let heap = entered.own();
    // A watched heap's bins are empty.
    let start = heap.bins().pop(class);
    let block = if start.is_null() { heap.allocate_for(*request) } else { NewBlock { start, zero: false } };
    drop(entered);
    if !block.start.is_null() {
        profile.record_small(block.start.addr(), stack.addresses(), class);
    }
    (!block.start.is_null()).then_some(block)
}

/// Lets the hot paths allocate no more of a class than `left`: withdraws a part of the bin's room, and sets blocks aside. `ran_empty` if the bin was empty
/// just now: the program allocates more than it frees.
pub(super) fn settle<O: Os>(own: Own<'_, O>, class: usize, left: u64, ran_empty: bool) {
    let (bins, left) = (own.bins(), i64::try_from(left).unwrap_or(i64::MAX));
    let withdrawn = &own.heap().profile_countdowns().withdrawn[class];
    let (mut len, whole) = (bins.len(class), bins.room_or_withheld(class) + withdrawn.get());
    if len.saturating_add(whole) > left && len > most_kept(left) {
        len = bins.set_aside_all_but(class, share(left, ran_empty).min(len), len, &own.renew_view());
    }
    let room = whole.min((left - len).max(0));
    withdrawn.set(whole - room);
    if own.shared().profile.notices_rust() {
        bins.withhold(class, room);
    } else if bins.room(class) != room {
        bins.grant(class, room);
    }
}

/// Lets a bin whose room ran out have more of what was withdrawn. `false` if nothing was, or if there is another reason to look at the bin.
#[inline(always)]
pub(super) fn settle_again<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    let withdrawn = &own.heap().profile_countdowns().withdrawn[class];
    if withdrawn.get() <= 0 || own.burst().awaits_last(class) {
        return false;
    }
    let Some(left) = left(own, class).filter(|_| withdrawn.get() > 0) else { return false };
    settle(own, class, left, false);
    true
}

/// Notes that a bin got all its room, of which nothing is withdrawn.
#[inline(always)]
pub(super) fn note_granted<O: Os>(own: Own<'_, O>, class: usize) {
    own.heap().profile_countdowns().withdrawn[class].set(0);
}

/// How many of `n` blocks an empty bin gets at once: no more than it can keep, so that none is set aside.
#[cold]
pub(super) fn batch<O: Os>(own: Own<'_, O>, class: usize, n: u32) -> u32 {
    let most = if own.watch().is_some() { None } else { left(own, class) };
    most.map_or(n, |left| n.min(u32::try_from(most_kept(left as i64)).unwrap_or(n)).max(1))
}

/// Blocks that may stay in a bin, if `left` may be allocated: the rest is room for frees.
fn most_kept(left: i64) -> i64 {
    left - left / 8
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

/// Blocks that stay in a bin of which `left` may be allocated. Few, because the others are room for frees, and each of these is looked at when the bin
/// is cut; but not so few that a program that allocates and frees in turns often finds the bin empty. Half of them for a program that allocates more than
/// it frees. At least one, if one may be allocated: a refill takes it.
fn share(left: i64, ran_empty: bool) -> i64 {
    /// With no more than that, both kinds of programs come to the slow path equally often.
    const FEW: i64 = 16;
    if ran_empty && left > FEW {
        return left / 2;
    }
    (left / 16).max((left / 2).clamp(1, 8)).min(left)
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
        Some(mailbox) if own.watch().is_none() => own.remote().hand_one_over(mailbox, block, false).err(),
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
