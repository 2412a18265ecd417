//! Guarded sampling: which allocations get a guarded block (`guarded`), without an instruction in the hot paths.
//!
//! Each class counts its allocations anyway. A countdown, drawn anew after each guarded block, says at which count the next is due. Slow paths
//! shorten what they grant to what is left of it:
//!
//! ```text
//!  the bin runs empty ─▶ a batch of at most so many blocks        ─▶ … empty when the countdown ends: this allocation is guarded
//!  its room runs out  ─▶ room for at most so many frees           ─▶ … out of room when as many were freed as were left:
//!                        ended? the bin's blocks are set aside     ─▶ the next allocation finds the bin empty, and is guarded;
//!                                                                    then the blocks are put back
//! ```
//!
//! A watched heap takes the slow path with every allocation, and counts it there.
//!
//! **Bias.** The guarded allocation is the first of its class that takes a slow path after the countdown has ended. In a program that frees as many
//! blocks of a class as it allocates that is the due one, or one soon after ([`ROOM_SHARE`]); after a drain or a long run of frees it is later. The
//! guarded blocks of a class are never nearer to each other than their countdowns, and every class is sampled at the same rate.
//!
//! Not guarded are blocks of explicit heaps, which end with their heap, and of Rust's global allocator unless the heap is watched: its free trusts the
//! layout and puts the block into a bin without a look.

use crate::config::{MisusePolicy, key};
use crate::guarded::pool::{Freed, Wanted};
use crate::misuse::finding::{Finding, Site};
use crate::misuse::{Misuse, abort};
use crate::span::family::Family;
use crate::thread::countdown::units_until;
use crate::thread::free_block::Found;
use crate::thread::heap::own::Own;
use crate::thread::new_block::NewBlock;
use crate::thread::profiling;
use crate::thread::watched::request::Request;
use freestone_os::Os;

/// Of how many allocations one is guarded, divided by this: a bin gets room for at least so many frees, so that a thread that only frees takes the slow
/// path seldom. A guarded allocation is late by as many at most where frees and allocations take turns.
const ROOM_SHARE: u64 = 64;

/// Room for at least so many frees, whatever the rate; and while a bin's blocks are set aside.
const ROOM_LEAST: u64 = 16;

/// Whether some allocations are guarded, or the heap profile samples some: all that slow paths pay if none is.
#[inline(always)]
pub(super) fn is_on<O: Os>(own: Own<'_, O>) -> bool {
    guards(own) || profiling::is_asked(own)
}

fn guards<O: Os>(own: Own<'_, O>) -> bool {
    own.shared().settings().get(key::GUARD_SAMPLE) != 0
}

/// Allocations of a class before the next guarded one; `None` if none is guarded in this heap.
fn left<O: Os>(own: Own<'_, O>, class: usize) -> Option<u64> {
    let rate = own.shared().settings().guard_sample()?;
    if own.holdings().is_some() {
        return None;
    }
    let at = match own.bins().guarded_at(class) {
        0 => draw(own, class, rate),
        at => at,
    };
    Some((at - 1).saturating_sub(own.bins().allocs(class)))
}

/// Draws the next countdown of a class. Returns the count at which it ends.
fn draw<O: Os>(own: Own<'_, O>, class: usize, rate: u64) -> u64 {
    let at = own.bins().allocs(class) + units_until(rate, random(own));
    own.bins().set_guarded_at(class, at);
    at
}

fn random<O: Os>(own: Own<'_, O>) -> u64 {
    own.shared().random.draw(|| own.shared().os().random())
}

/// A guarded block, or one that the heap profile samples, if a countdown of the class has ended. Puts back what was set aside for it.
#[inline(always)]
pub(super) fn sample<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<NewBlock> {
    if profiling::is_asked(own) {
        sample_or_guard(own, class, request)
    } else if guards(own) {
        sample_slow(own, class, request)
    } else {
        None
    }
}

#[cold]
fn sample_slow<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<NewBlock> {
    put_back(own, class);
    guard_if_due(own, class, request)
}

#[cold]
fn sample_or_guard<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<NewBlock> {
    if let Some(block) = profiling::sample(own, class, request).or_else(|| guard_if_due(own, class, request)) {
        return Some(block);
    }
    if own.bins().is_empty(class) && put_back(own, class) {
        settle(own, class);
    }
    None
}

/// A guarded block, zeroed, if the countdown of the class has ended.
#[inline(always)]
fn guard_if_due<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<NewBlock> {
    let is_due = if own.watch().is_some() { counts_down(own, class)? } else { left(own, class)? == 0 };
    is_due.then(|| allocate(own, class, request)).flatten().map(|start| NewBlock { start, zero: true })
}

/// Counts an allocation of a watched heap, all of which come here. Returns whether it is to be guarded.
fn counts_down<O: Os>(own: Own<'_, O>, class: usize) -> Option<bool> {
    let rate = own.shared().settings().guard_sample()?;
    if own.holdings().is_some() {
        return None;
    }
    let left = match own.bins().guarded_at(class) {
        0 => units_until(rate, random(own)),
        left => left,
    };
    own.bins().set_guarded_at(class, left - 1);
    Some(left == 1)
}

/// Inlined: each function less is a frame less in every stack.
#[inline(always)]
fn allocate<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<*mut u8> {
    if own.watch().is_none() {
        draw(own, class, own.shared().settings().guard_sample()?);
    }
    if (request.family == Family::Rust && own.watch().is_none()) || !has_room(own, request.size) {
        return None;
    }
    let wanted = Wanted { size: request.size, align: request.align, class };
    let (start, bytes) = own.shared().guarded.allocate(wanted, random(own) & 1 == 0, &Site::here())?;
    own.shared().pages.add_beside(bytes);
    own.bins().count_single_alloc(class);
    Some(start)
}

/// Whether the hard limit lets the process have a guarded block of `size` bytes.
fn has_room<O: Os>(own: Own<'_, O>, size: usize) -> bool {
    let pages = &own.shared().pages;
    let more = 2 * own.shared().os().os_page_bytes() + size;
    own.shared().settings().limit_hard_bytes().is_none_or(|limit| pages.limited_bytes().saturating_add(more) <= limit)
}

/// Of a batch of `n` blocks for a bin as many as are handed out before the next guarded allocation, at least one.
#[inline(always)]
pub(super) fn batch<O: Os>(own: Own<'_, O>, class: usize, n: u32) -> u32 {
    if is_on(own) { batch_slow(own, class, n) } else { n }
}

#[cold]
fn batch_slow<O: Os>(own: Own<'_, O>, class: usize, n: u32) -> u32 {
    if profiling::is_asked(own) {
        return left_to_any(own, class).map_or(n, |left| profiling::batch(n, left));
    }
    left(own, class).map_or(n, |left| n.min(u32::try_from(left).unwrap_or(n)).max(1))
}

/// Shortens the room of a bin to what is left of the countdown.
#[inline(always)]
pub(super) fn shorten<O: Os>(own: Own<'_, O>, class: usize) {
    if is_on(own) {
        shorten_slow(own, class);
    }
}

#[cold]
fn shorten_slow<O: Os>(own: Own<'_, O>, class: usize) {
    if profiling::is_asked(own) {
        return settle(own, class);
    }
    if let Some(left) = left(own, class) {
        let rate = own.shared().settings().get(key::GUARD_SAMPLE) as u64;
        let least = if left == 0 { ROOM_LEAST } else { (rate / ROOM_SHARE).max(ROOM_LEAST) };
        let most = i64::try_from(left.max(least)).unwrap_or(i64::MAX);
        if own.bins().room(class) > most {
            own.bins().grant(class, most);
        }
    }
}

/// After blocks came into a bin without using up room: lets the hot paths allocate no more than are left until the next sample of the heap profile.
#[inline(always)]
pub(super) fn settle<O: Os>(own: Own<'_, O>, class: usize) {
    if profiling::is_asked(own) && own.watch().is_none() {
        if let Some(left) = left_to_any(own, class) {
            profiling::settle(own, class, left);
        }
    }
}

/// Allocations of a class before the next one that the heap profile samples or that is guarded; `None` if the heap profile samples none.
fn left_to_any<O: Os>(own: Own<'_, O>, class: usize) -> Option<u64> {
    let sampled = profiling::left(own, class)?;
    Some(left(own, class).map_or(sampled, |guarded| guarded.min(sampled)))
}

/// Shortens the room that a bin was granted after it had run out; if the countdown has ended, sets the bin's blocks aside. If they were aside
/// already, they come back until the next time.
#[inline(always)]
pub(super) fn after_overflow<O: Os>(own: Own<'_, O>, class: usize) {
    if profiling::is_asked(own) {
        settle(own, class);
    } else if guards(own) && own.bins().ends_before_room(class) {
        after_overflow_slow(own, class);
    }
}

#[cold]
fn after_overflow_slow<O: Os>(own: Own<'_, O>, class: usize) {
    if put_back(own, class) || own.watch().is_some() {
        return;
    }
    if left(own, class) == Some(0) {
        own.bins().set_aside(class);
    }
    shorten_slow(own, class);
}

/// Puts the blocks of a class that were set aside back into their bin, before those that came meanwhile. `false` if none were.
#[inline(always)]
pub(super) fn put_back<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    own.bins().has_aside(class) && put_back_slow(own, class)
}

#[cold]
fn put_back_slow<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    let Some(mut newer) = own.bins().put_back(class) else { return false };
    let view = own.renew_view();
    while let Some(found) = newer.pop(&view, own.lookup().tag()) {
        match found {
            Found::Own(block) | Found::Other(block, _) => own.bins().put(block),
            Found::Lost(address) => {
                let block_bytes = crate::size_class::block_bytes(class);
                own.report(Misuse::DoubleFree { block_bytes }, address);
            }
            Found::Wrong(what, address) => own.report(what, address),
        }
    }
    true
}

impl<O: Os + 'static> Own<'_, O> {
    /// Frees a guarded block. An invalid address is reported.
    #[cold]
    pub(super) fn free_guarded(self, block: *mut u8) {
        match self.shared().guarded.free(block.addr(), &Site::here()) {
            Freed::Yes { class, bytes } => {
                self.shared().pages.sub_beside(bytes);
                self.bins().count_single_free(class);
            }
            Freed::No(what) => self.report_guarded(what, block.addr()),
        }
    }

    /// The size of a guarded block; `None` for an invalid address, which is reported.
    #[cold]
    pub(super) fn guarded_size(self, block: *mut u8) -> Option<usize> {
        let size = self.shared().guarded.size_of(block.addr());
        size.map_err(|what| self.report_guarded(what, block.addr())).ok()
    }

    fn report_guarded(self, what: Misuse, address: usize) {
        match self.shared().guarded.history(address) {
            Some(history) => {
                let finding = Finding::new(what, address, self.heap().number()).with_history(&history);
                if finding.report(self.shared().settings()) == MisusePolicy::Abort {
                    abort();
                }
            }
            None => self.report(what, address),
        }
    }
}

#[cfg(test)]
mod tests;
