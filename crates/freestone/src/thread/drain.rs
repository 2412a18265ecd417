//! Draining the inbox: moves the blocks that other threads handed over into the bins.
//!
//! A bin that holds more than twice its capacity is flushed. That is asked of every bin that got blocks, but not for each of its blocks.

use crate::misuse::Misuse;
use crate::size_class::{N_CLASSES, block_bytes, class_of};
use crate::span::PageIndex;
use crate::thread::free_block::{Found, FreeBlock, Stretch};
use crate::thread::heap::own::Own;
use crate::thread::in_transit::InTransit;
use crate::thread::watched::release::take_home;
use crate::thread::{double_free, flush, returns, route, sampling, spans};
use core::mem;
use freestone_os::Os;

/// After this many blocks the bins that they came into are looked at: until then a bin may hold as many more than it should.
const LOOK_AFTER: u32 = if IS_MODEL { 2 } else { 256 };

/// The most blocks that an allocation takes back, give or take those after which the bins are looked at: it would last a tenth of a second if a million have
/// waited for the thread.
const DRAINED_MOST: u32 = if IS_MODEL { 4 } else { 4096 };

/// In models few blocks change threads, and some are to be left all the same.
const IS_MODEL: bool = cfg!(any(fuzzing, shuttle));

/// Moves the blocks that other threads handed over into the bins. A block whose span has another owner by now is sent there.
pub(crate) fn drain<O: Os>(own: Own<'_, O>) {
    drain_at_most(own, u32::MAX);
}

/// As [`drain`], for an allocation: takes some thousands of blocks back, and leaves the others where they were, for the next ones.
pub(crate) fn drain_some<O: Os>(own: Own<'_, O>) {
    drain_at_most(own, DRAINED_MOST);
}

fn drain_at_most<O: Os>(own: Own<'_, O>, most: u32) {
    let mailbox = own.heap().mailbox();
    let blocks = mailbox.take();
    if blocks.is_empty() || take_back(own, blocks, most) {
        let looked_through = mailbox.looked_through().take(mailbox.key());
        if !looked_through.is_empty() {
            take_back(own, looked_through, most);
        }
    }
}

/// Takes back what came out of an inbox, up to about `most` blocks, and returns the others to it. Returns whether it took all.
#[inline(never)]
fn take_back<O: Os>(own: Own<'_, O>, mut blocks: InTransit, most: u32) -> bool {
    let mailbox = own.heap().mailbox();
    while !blocks.is_empty() {
        blocks = take_back_some(own, blocks, most);
        if !blocks.is_empty() {
            match mailbox.inbox().put_back(blocks).or_else(|left| mailbox.looked_through().put_back(left)) {
                Ok(()) => return false,
                // Other threads have handed over more, and what they did before waits as well.
                Err(left) => blocks = left,
            }
        }
    }
    true
}

/// Takes back about `most` blocks of some. Returns the others.
fn take_back_some<O: Os>(own: Own<'_, O>, mut blocks: InTransit, most: u32) -> InTransit {
    // Each block was allocated before it was handed over, so the newest view covers it.
    let (view, tag) = (own.renew_view(), own.lookup().tag());
    let is_plain = own.watch().is_none() && !sampling::counts_puts(own);
    let (mut filled, mut has_stretches, mut left) = (Filled::NONE, false, most);
    while !blocks.is_empty() && left > 0 {
        if is_plain {
            while let Some(block) = blocks.pop_own(&view, tag) {
                if filled.put(own, block) {
                    left = left.saturating_sub(LOOK_AFTER);
                    if left == 0 {
                        break;
                    }
                }
            }
        }
        left = left.saturating_sub(1);
        match blocks.pop(&view, tag) {
            Some(Found::Own(block)) => take_own(own, block, &mut filled),
            Some(Found::Other(block, _)) if block.is_suspect() => route::route_suspect(own, block),
            Some(Found::Other(block, generation)) => route::send(own, block, generation),
            Some(Found::Stretch(stretch)) => {
                has_stretches = true;
                take_stretch(own, stretch);
            }
            Some(Found::Wrong(what, address)) => report(own, what, address),
            Some(Found::Lost(_)) | None => {}
        }
    }
    filled.look(own);
    if has_stretches || own.watch().is_some() {
        returns::turn_to(own, PageIndex::NONE);
    }
    blocks
}

/// Takes back a block of this heap.
#[inline]
fn take_own<O: Os>(own: Own<'_, O>, block: FreeBlock, filled: &mut Filled) {
    let class = block.class();
    match own.watch() {
        Some(watch) => take_home(own, watch, block),
        None if block.is_suspect() && double_free::is_free(own, &block) => {
            report(own, Misuse::DoubleFree { block_bytes: block_bytes(class) }, block.address());
        }
        None => {
            filled.add(own, block);
            // Before the bin may be flushed: what is counted is the first block of it.
            sampling::count_put(own, class);
            filled.look_if_due(own);
        }
    }
}

/// Takes back a stretch: into its span, for its blocks may have no memory.
#[cold]
fn take_stretch<O: Os>(own: Own<'_, O>, stretch: Stretch) {
    match spans::home_of(own.layout(), own.lookup(), stretch.address()) {
        Some(home) => returns::give_back_stretch(own, &home, &stretch),
        None => route::route_stretch(own, stretch),
    }
}

/// Reports what the program did to a block in transit. If it is in a bin of this heap too, its link there was overwritten: the bin ends with it.
#[cold]
fn report<O: Os>(own: Own<'_, O>, what: Misuse, address: usize) {
    if let Misuse::DoubleFree { block_bytes } = what {
        own.bins().end_at(class_of(block_bytes), address, &own.renew_view());
    }
    own.report(what, address);
}

/// The bins that a drain puts blocks into.
struct Filled {
    /// The classes, each as the bit that its number modulo 64 has.
    classes: u64,
    /// Blocks until the bins are looked at.
    n_left: u32,
}

impl Filled {
    const NONE: Self = Self { classes: 0, n_left: LOOK_AFTER };

    /// Puts a block into its bin, and looks at the bins now and then. Returns whether it did.
    #[inline(always)]
    fn put<O: Os>(&mut self, own: Own<'_, O>, block: FreeBlock) -> bool {
        self.add(own, block);
        self.look_if_due(own)
    }

    #[inline(always)]
    fn add<O: Os>(&mut self, own: Own<'_, O>, block: FreeBlock) {
        self.classes |= 1 << (block.class() % 64);
        own.bins().put(block);
        self.n_left -= 1;
    }

    #[inline(always)]
    fn look_if_due<O: Os>(&mut self, own: Own<'_, O>) -> bool {
        let is_due = self.n_left == 0;
        if is_due {
            self.look(own);
        }
        is_due
    }

    /// Looks at the bins that got blocks.
    #[inline(always)]
    fn look<O: Os>(&mut self, own: Own<'_, O>) {
        look_at(own, mem::replace(self, Self::NONE).classes);
    }
}

/// Flushes those of some bins that hold more than twice their capacity, and publishes what is live. `classes` has a bit for each, as [`Filled`] has.
#[cold]
#[inline(never)]
fn look_at<O: Os>(own: Own<'_, O>, mut classes: u64) {
    while classes != 0 {
        let lowest = classes.trailing_zeros() as usize;
        classes &= classes - 1;
        for class in (lowest..N_CLASSES).step_by(64) {
            // A bin that others keep filled neither runs empty nor overflows.
            own.publish_if_much(class, own.bins().live(class));
            if own.bins().len(class) > 2 * i64::from(flush::bin_capacity(own, class)) {
                flush::look_at_full(own, class);
            }
        }
    }
}

#[cfg(test)]
mod tests;
