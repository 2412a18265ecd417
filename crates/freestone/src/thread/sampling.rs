//! Guarded sampling: which allocations get a guarded block (`guarded`), without an instruction in the hot paths.
//!
//! Each class counts its allocations anyway, and a heap has one countdown for all of them (`thread::countdown`). Slow paths tell it how many blocks of
//! their class were handed out since the last time:
//!
//! ```text
//!  the bin runs empty ─▶ over? this allocation is guarded
//!  its room runs out  ─▶ over? the next allocation that finds the bin empty is guarded
//!                        over the last time, and none has? the bin's blocks are set aside ─▶ the next allocation finds the bin empty;
//!                                                                                            then the blocks are put back
//! ```
//!
//! A watched heap takes the slow path with every allocation, and counts it there.
//!
//! **Bias.** The countdown ends in a class as often as the class has allocations, so every class is sampled at one rate. The guarded allocation is not the
//! due one, but the next of its class that finds the bin empty: late by a batch, or, where frees and allocations take turns, by the frees that the
//! bin has room for, twice. So a place in the program that allocates when others have used the bin up is guarded more often than its share, and one
//! that always reuses what was freed just before less often.
//!
//! Not guarded are blocks of explicit heaps, which end with their heap, and of Rust's global allocator unless the heap is watched: its free trusts the
//! layout and puts the block into a bin without a look.

use crate::config::{MisusePolicy, key};
use crate::guarded::pool::{Freed, Wanted};
use crate::misuse::finding::{Finding, Site};
use crate::misuse::{Misuse, abort};
use crate::span::family::Family;
use crate::thread::heap::own::Own;
use crate::thread::new_block::NewBlock;
use crate::thread::profiling;
use crate::thread::watched::request::Request;
use freestone_os::Os;

/// A batch has at most as many blocks, and a bin room for at most as many frees, as the rate divided by this: so two samples seldom fall between two
/// looks. At rates of some thousands nothing is shortened.
const SHARE: u64 = 4;

/// Room for at least so many frees, whatever the rate.
const ROOM_LEAST: i64 = 16;

/// Whether some allocations are guarded, or the heap profile samples some: all that slow paths pay if none is.
#[inline(always)]
pub(super) fn is_on<O: Os>(own: Own<'_, O>) -> bool {
    guards(own) || profiling::is_asked(own)
}

fn guards<O: Os>(own: Own<'_, O>) -> bool {
    own.shared().settings().get(key::GUARD_SAMPLE) != 0
}

/// Of how many allocations of this heap one is guarded; `None` if none is.
fn rate<O: Os>(own: Own<'_, O>) -> Option<u64> {
    own.shared().settings().guard_sample().filter(|_| own.holdings().is_none())
}

/// Tells the countdown of the blocks of a class that were handed out, and of `more`. Returns whether that ended it.
fn count<O: Os>(own: Own<'_, O>, class: usize, rate: u64, more: u64) -> bool {
    let units = own.bins().take_uncounted(class, more) + more;
    own.bins().countdown().pass(units, rate, || random(own))
}

/// Allocations of a class before the next guarded one, if no other class has any; `None` if none is guarded in this heap.
fn left<O: Os>(own: Own<'_, O>, class: usize) -> Option<u64> {
    let left = own.bins().countdown().left(rate(own)?, || random(own));
    Some((left - 1).saturating_sub(own.bins().uncounted(class)))
}

/// Blocks of a batch, and frees that a bin has room for, at most.
fn share(rate: u64) -> i64 {
    i64::try_from(rate / SHARE).unwrap_or(i64::MAX)
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
        settle_near(own, class, true);
    }
    None
}

/// A guarded block, zeroed, if the countdown of the class has ended.
#[inline(always)]
fn guard_if_due<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<NewBlock> {
    let rate = rate(own)?;
    // A watched heap's bins are empty: all that it hands out comes here.
    let is_over = count(own, class, rate, 1);
    let is_due = own.bins().take_due(class) || is_over;
    is_due.then(|| allocate(own, class, request)).flatten().map(|start| NewBlock { start, zero: true })
}

/// Inlined: each function less is a frame less in every stack.
#[inline(always)]
fn allocate<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<*mut u8> {
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

/// Of a batch of `n` blocks for a bin as many as the rate of guarded blocks allows; at least one. The heap profile takes whole batches, so that it changes
/// neither the order of blocks nor how often bins are flushed.
#[inline(always)]
pub(super) fn batch<O: Os>(own: Own<'_, O>, n: u32) -> u32 {
    if guards(own) && !profiling::is_asked(own) { batch_slow(own, n) } else { n }
}

#[cold]
fn batch_slow<O: Os>(own: Own<'_, O>, n: u32) -> u32 {
    rate(own).map_or(n, |rate| n.min(u32::try_from(share(rate)).unwrap_or(n)).max(1))
}

/// Shortens the room of a bin, if the rate or the heap profile asks for that.
#[inline(always)]
pub(super) fn shorten<O: Os>(own: Own<'_, O>, class: usize) {
    if guards(own) || (profiling::is_asked(own) && !profiling::is_far(own, class)) {
        shorten_slow(own, class);
    }
}

#[cold]
fn shorten_slow<O: Os>(own: Own<'_, O>, class: usize) {
    if profiling::is_asked(own) {
        return settle_near(own, class, true);
    }
    if let Some(rate) = rate(own) {
        shorten_to(own, class, share(rate));
    }
}

fn shorten_to<O: Os>(own: Own<'_, O>, class: usize, most: i64) {
    let most = most.max(ROOM_LEAST);
    if own.bins().room(class) > most {
        own.bins().grant(class, most);
    }
}

/// After blocks came into a bin without using up room: lets the hot paths allocate no more than are left until the next sample of the heap profile.
#[inline(always)]
pub(super) fn settle<O: Os>(own: Own<'_, O>, class: usize) {
    if profiling::is_asked(own) && (guards(own) || !profiling::is_far(own, class)) {
        settle_near(own, class, false);
    }
}

#[cold]
fn settle_near<O: Os>(own: Own<'_, O>, class: usize, ran_empty: bool) {
    if own.watch().is_some() {
        return;
    }
    let Some(mut to_sample) = profiling::left(own, class) else { return };
    if guards(own) {
        to_sample = left(own, class).map_or(to_sample, |to_guarded| to_guarded.min(to_sample));
    }
    profiling::settle(own, class, to_sample, ran_empty);
}

/// Tells the countdown of a class whose room ran out. If an allocation of the class was due before that, the bin's blocks are set aside; if they were
/// aside already, they come back until the next time.
#[inline(always)]
pub(super) fn after_overflow<O: Os>(own: Own<'_, O>, class: usize) {
    if profiling::is_asked(own) {
        settle(own, class);
    } else if guards(own) && !own.bins().counts_down(class) {
        after_overflow_slow(own, class);
    }
}

#[cold]
fn after_overflow_slow<O: Os>(own: Own<'_, O>, class: usize) {
    let Some(rate) = rate(own) else { return };
    let (bins, n_aside) = (own.bins(), own.bins().n_aside(class));
    if put_back(own, class) {
        // The room was granted to a bin without these blocks.
        return shorten_to(own, class, bins.room(class) - n_aside);
    }
    if own.watch().is_some() {
        return;
    }
    let was_due = bins.is_due(class);
    if count(own, class, rate, 0) {
        bins.set_due(class);
    }
    if was_due {
        bins.set_aside(class);
    }
    shorten_to(own, class, share(rate));
}

/// Puts the blocks of a class that were set aside back into their bin, behind those that came meanwhile. `false` if none were.
#[inline(always)]
pub(super) fn put_back<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    own.bins().has_aside(class) && put_back_slow(own, class)
}

#[cold]
fn put_back_slow<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    own.bins().put_back(class, || own.renew_view()).unwrap_or_else(|address| {
        own.report(Misuse::link_written(crate::size_class::block_bytes(class)), address);
        true
    })
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
