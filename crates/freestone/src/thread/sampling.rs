//! Guarded sampling: which allocations get a guarded block (`guarded`), without an instruction in the hot paths.
//!
//! Each class counts its allocations anyway, and a heap has one countdown for all of them (`thread::countdown`). Slow paths tell it how many blocks of
//! their class were handed out since the last time, and note how many samples fell among them: so many allocations are due.
//!
//! ```text
//!  the bin runs empty ─▶ counted; is one due? this allocation is guarded, and the bin stays empty for the next
//!  its room runs out  ─▶ counted
//!                        one was due the last time, and allocations found blocks since?
//!                        the bin's blocks are set aside ─▶ the next allocations find the bin empty, until none is due; then the blocks are put back
//! ```
//!
//! Nothing is shortened for a sample: bins have the room, batches and flushes that they have without. A watched heap takes the slow path with every
//! allocation, and counts it there.
//!
//! **Bias.** The countdown ends in a class as often as the class has allocations, so every class is sampled at one rate. The guarded allocation is not the
//! due one, but the next of its class that finds the bin empty: late by a batch, or, where frees and allocations take turns, by the frees that the
//! bin has room for, twice. If several fell due meanwhile, as many allocations in a row are guarded. So a place in the program that allocates when others have
//! used the bin up is guarded more often than its share, and one that always reuses what was freed just before less often.
//!
//! Not guarded are blocks of explicit heaps, which end with their heap, and of Rust's global allocator unless the heap is watched: its free trusts the
//! layout and puts the block into a bin without a look.

use crate::config::{MisusePolicy, key};
use crate::guarded::pool::{Freed, GuardedPool, Wanted};
use crate::guarded::slot::{Block, Kind};
use crate::misuse::finding::{Finding, Site};
use crate::misuse::{Misuse, abort};
use crate::span::family::Family;
use crate::thread::heap::own::Own;
use crate::thread::new_block::NewBlock;
use crate::thread::watched::examine::claim_mismatch;
use crate::thread::watched::request::{Claim, Request};
use crate::thread::{current, profiling};
use core::ptr;
use freestone_os::stack::Stack;
use freestone_os::{Os, process};

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

/// Tells the countdown of the blocks of a class that were handed out, and of `more`. Notes the samples that fell among them.
fn count<O: Os>(own: Own<'_, O>, class: usize, rate: u64, more: u64) {
    let units = own.bins().take_uncounted(class, more) + more;
    own.bins().add_due(class, own.bins().countdown().pass(units, rate, || random(own)));
}

fn random<O: Os>(own: Own<'_, O>) -> u64 {
    own.shared().random.draw(|| own.shared().os().random())
}

/// A guarded block, or one that the heap profile samples, if an allocation of the class is due. Else puts back what was set aside.
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

/// A sampled block, if the first block of a class's bin is chosen; null if not, or if allocations are guarded, too: then [`sample`] decides.
#[inline(always)]
pub(super) fn sample_first<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> *mut u8 {
    let block = if guards(own) { None } else { profiling::sample(own, class, request, false) };
    block.map_or(ptr::null_mut(), |block| block.start)
}

#[cold]
fn sample_slow<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<NewBlock> {
    if is_due(own, class, request) {
        if let Some(block) = guard(own, class, request) {
            return Some(block);
        }
    }
    put_back(own, class);
    None
}

#[cold]
fn sample_or_guard<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<NewBlock> {
    let is_due = is_due(own, class, request);
    let mut block = profiling::sample(own, class, request, is_due || own.watch().is_some());
    let guarded = if block.is_none() && is_due { guard(own, class, request) } else { None };
    if is_due && block.or(guarded).is_none() && own.watch().is_none() {
        // Another thread has taken the last slot, or there is no memory for it: this allocation takes a block of the bin after all.
        block = profiling::sample(own, class, request, false);
    }
    if guarded.is_none() && own.bins().is_empty(class) {
        put_back(own, class);
    }
    block.or(guarded)
}

/// Whether an allocation of the class, of which the countdown is told, is to be guarded, and can be. If it cannot, it is due no more.
#[inline(always)]
fn is_due<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> bool {
    // A watched heap's bins are empty: all that it hands out comes here.
    let Some(rate) = rate(own) else { return false };
    count(own, class, rate, 1);
    if !own.bins().is_due(class) {
        return false;
    }
    let is_possible = can_guard(own, request);
    if !is_possible {
        own.bins().take_due(class);
    }
    is_possible
}

/// Whether a guarded block may be what is asked for, and there is room for one.
fn can_guard<O: Os>(own: Own<'_, O>, request: &Request) -> bool {
    let is_refused = request.family == Family::Rust && own.watch().is_none();
    !is_refused
        && GuardedPool::fits(request.size, request.align)
        && has_room(own, request.size)
        && own.shared().guarded.has_vacant()
}

/// A guarded block, zeroed, for an allocation that is due.
#[inline(always)]
fn guard<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<NewBlock> {
    own.bins().take_due(class);
    allocate(own, class, request).map(|start| NewBlock { start, zero: true })
}

/// Inlined: each function less is a frame less in every stack.
#[inline(always)]
fn allocate<O: Os>(own: Own<'_, O>, class: usize, request: &Request) -> Option<*mut u8> {
    let family = if own.watch().is_some() { request.family as u32 } else { 0 };
    let kind = Kind::new(class, request.align, family);
    let wanted = Wanted { size: request.size, align: request.align, kind };
    let (start, bytes) = own.shared().guarded.allocate(wanted, random(own) & 1 == 0, &here(own))?;
    own.shared().pages.add_beside(bytes);
    own.bins().count_single_alloc(class);
    Some(start)
}

/// Where the heap's thread is. Asks the kernel as little as can be: a system call takes as long as a part of the stack.
#[inline(always)]
fn here<O: Os>(own: Own<'_, O>) -> Site {
    let mut stack = Stack::EMPTY;
    stack.take_here(&own.heap().profile_countdowns().own_stack);
    Site { thread: thread_id(own), stack }
}

/// The kernel's number of the calling thread. The heap knows it from the second time on, unless threads take turns with it.
fn thread_id<O: Os>(own: Own<'_, O>) -> i32 {
    let heap = own.heap();
    let is_of_thread = ptr::addr_eq(current::pointer(), heap);
    if is_of_thread && heap.thread_id() != 0 {
        return heap.thread_id() as i32;
    }
    let id = process::thread_id();
    if is_of_thread {
        heap.set_thread_id(u32::try_from(id).unwrap_or(0));
    }
    id
}

/// Whether the hard limit lets the process have a guarded block of `size` bytes.
fn has_room<O: Os>(own: Own<'_, O>, size: usize) -> bool {
    let pages = &own.shared().pages;
    let more = 2 * own.shared().os().os_page_bytes() + size;
    own.shared().settings().limit_hard_bytes().is_none_or(|limit| pages.limited_bytes().saturating_add(more) <= limit)
}

/// After a bin was granted room: lets that end with the block that the heap profile chooses next.
#[inline(always)]
pub(super) fn settle<O: Os>(own: Own<'_, O>, class: usize) {
    if profiling::is_asked(own) && !profiling::is_far(own, class, 0) {
        profiling::settle(own, class);
    }
}

/// Tells the heap profile that a batch of `n` blocks came first in the bin of a class.
#[inline(always)]
pub(super) fn count_batch<O: Os>(own: Own<'_, O>, class: usize, n: u32) {
    if profiling::is_asked(own) {
        profiling::count_batch(own, class, n);
    }
}

/// Whether the heap profile is to be told of each block that comes into a bin without using up room.
#[inline(always)]
pub(super) fn counts_puts<O: Os>(own: Own<'_, O>) -> bool {
    profiling::is_asked(own) && own.holdings().is_none()
}

/// Tells the heap profile that a block came first in the bin of a class, without using up room.
#[inline(always)]
pub(super) fn count_put<O: Os>(own: Own<'_, O>, class: usize) {
    if counts_puts(own) {
        profiling::count_put(own, class);
    }
}

/// Tells the countdown of a class whose room ran out. If an allocation of the class was due the last time already, and the bin had blocks for those that
/// came since, its blocks are set aside.
#[inline(always)]
pub(super) fn after_overflow<O: Os>(own: Own<'_, O>, class: usize) {
    settle(own, class);
    if guards(own) && !own.bins().counts_down(class) {
        after_overflow_slow(own, class);
    }
}

#[cold]
fn after_overflow_slow<O: Os>(own: Own<'_, O>, class: usize) {
    let Some(rate) = rate(own).filter(|_| own.watch().is_none()) else { return };
    let bins = own.bins();
    // A thread that only frees gains nothing by blocks set aside, and walks over what came meanwhile when they are put back.
    let is_late = bins.is_due(class) && bins.uncounted(class) > 0;
    count(own, class, rate, 0);
    if is_late {
        bins.set_aside(class);
    }
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
    /// Frees a guarded block, of which the program says something, which is checked if a watched heap allocated it. What is wrong is reported.
    #[cold]
    pub(super) fn free_guarded(self, block: *mut u8, claim: Claim) {
        let asked = self.shared().guarded.block_at(block.addr()).ok();
        let mismatch = asked.and_then(|Block { size, kind, .. }| {
            claim_mismatch(Family::of(kind.family())?, (size, kind.align_log2()), claim)
        });
        if let Some(what) = mismatch {
            self.report_guarded(what, block.addr());
        }
        match self.shared().guarded.free(block.addr(), &here(self)) {
            Freed::Yes { class, bytes } => {
                self.shared().pages.sub_beside(bytes);
                self.bins().count_single_free(class);
                profiling::count_free_beside(self, class);
            }
            Freed::No(what) => self.report_guarded(what, block.addr()),
        }
    }

    /// What is known of a guarded block; `None` for an invalid address, which is reported.
    #[cold]
    pub(super) fn guarded_block(self, block: *mut u8) -> Option<Block> {
        let found = self.shared().guarded.block_at(block.addr());
        found.map_err(|what| self.report_guarded(what, block.addr())).ok()
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
