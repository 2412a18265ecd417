//! What waits in the inbox of a heap whose thread is idle: its memory goes back to the operating system all the same.
//!
//! ```text
//!  inbox ── take_for_owner ─▶ a bit for each block ─▶ blocks of a span that lie beside each other are a stretch
//!    ▲                          │          ▲              │ the OS pages inside are purged; its first block says how many there are
//!    └── put back: few, or one  │          │              ▼
//!        is not as it should be ┘          └────── looked_through ─▶ the heap's thread, when it next drains its inbox
//! ```
//!
//! Only a heap's thread may change its spans, and an idle one does not. But the blocks in its inbox belong to whoever takes them out: no code uses their
//! memory, so that of whole OS pages can go. What is kept of a stretch is its first block, with the link; the thread then gives stretches back to their spans
//! and touches no other block of them. Its heap stays as it is, and nothing is added to what it does when it allocates or frees.
//!
//! What was looked through before is looked through again with what has come since, because neighbours may come at different times. So that this takes little
//! of the processor, an inbox is then left alone for twenty times as long as that took.
//!
//! The bitmap is mapped for the call: 1/128 of the address range that has been used, of which only what has blocks takes memory.
//!
//! Who is to stop, because another thread forks, purges nothing further, and puts what keeps its memory back as stretches.
//!
//! Threads: one at a time, whichever; the heap's own thread may take or close the inbox meanwhile.

use crate::misuse::{Misuse, misuse};
use crate::shared::Shared;
use crate::size_class::block_bytes;
use crate::span::free_node::Marked;
use crate::span::{Generation, View};
use crate::thread::free_block::{Found, FreeBlock};
use crate::thread::in_transit::{Handover, InTransit};
use crate::thread::mailbox::Mailbox;
use crate::thread::returns::misuse_of;
use crate::thread::send::{self, Sent};
use freestone_base::lock::{Forker, Lock};
use freestone_base::sync::{AtomicBool, Ordering};
use freestone_os::{Futex, Os};

/// The most blocks that are walked over to put others back behind them.
const WALKED_MOST: u32 = 1 << 24;

/// After so many blocks it is asked whether to stop.
const ASKED_EVERY: u32 = 256;

/// What is looked through.
pub(crate) struct Look<'a, O: Os> {
    pub(crate) shared: &'a Shared<O>,
    /// An inbox with fewer bytes in blocks is left as it is.
    pub(crate) bytes_least: usize,
    /// The right to look, which a thread that forks may wait for.
    pub(crate) looking: &'a Looking,
    /// Whether another thread waits for this one to end.
    pub(crate) is_ending: &'a dyn Fn() -> bool,
}

impl<O: Os> Look<'_, O> {
    /// Whether another thread waits for this one.
    pub(crate) fn is_to_stop(&self) -> bool {
        self.looking.is_forking.load(Ordering::Relaxed) || (self.is_ending)()
    }

    /// Looks through an inbox. Notes what it leaves there, and when it may be looked through again.
    pub(crate) fn through(&self, mailbox: &Mailbox) {
        let new = mailbox.inbox().take_for_owner(|| mailbox.key());
        if new.is_empty() {
            return;
        }
        let began_ms = self.shared.os().now_ms();
        // Each block was allocated before it was handed over, so the newest view covers it.
        let view = self.shared.pages.view();
        let mut new = Some(new);
        let _ = freestone_os::with_zeros(Bits::n_words(view.reach()), |words| {
            let bits = &mut Bits::new(words, self.shared.pages.layout());
            new = new.take().and_then(|new| self.through_blocks(mailbox, &view, new, bits));
        });
        // Who had to stop looks again.
        let left = new.as_ref().filter(|_| !self.is_to_stop()).map_or(0, InTransit::newest);
        if let Some(new) = new {
            self.put_back(mailbox, new);
        }
        let now_ms = self.shared.os().now_ms();
        mailbox.idle().note_looked_through(left, now_ms as u32, (now_ms - began_ms) as u32);
    }

    /// Purges what can go of new blocks and those that were looked through before, and hands them over. Returns the new ones if there are few, or some are not as
    /// they should be; stretches of both that keep their memory if this is to stop. The bits are all zero.
    fn through_blocks(&self, mailbox: &Mailbox, view: &View, new: InTransit, bits: &mut Bits<'_>) -> Option<InTransit> {
        let Some(bytes) = self.collect(&new, view, bits) else { return Some(new) };
        if bytes < self.bytes_least {
            return Some(new);
        }
        let old = mailbox.looked_through().take_for_owner(|| mailbox.key());
        if !old.is_empty() && self.collect(&old, view, bits).is_none() {
            if let Err(old) = mailbox.looked_through().put_back(old) {
                self.send(view, old);
            }
            return Some(new);
        }
        self.hand_over(mailbox, view, bits)
    }

    /// Hands over the blocks whose bits are set, those beside each other as stretches, and purges what can go until this is to stop. Returns the stretches that
    /// keep their memory then.
    fn hand_over(&self, mailbox: &Mailbox, view: &View, bits: &Bits<'_>) -> Option<InTransit> {
        let (os_page_bytes, key) = (self.shared.os().os_page_bytes(), mailbox.key());
        let mut purging = Purging::of(self.shared);
        let (mut done, mut left, mut is_to_stop) = (Linking::with(key), Linking::with(key), false);
        for stretch in Stretches::of(bits, view) {
            is_to_stop |= self.is_to_stop();
            let os_pages = stretch.os_pages(os_page_bytes);
            if os_pages.bytes == 0 {
                done.add_each(&stretch);
            } else if is_to_stop {
                left.add(&stretch);
            } else {
                done.add(&stretch);
                purging.add(os_pages);
            }
        }
        purging.purge();
        if let Some(Err(refused)) = done.finish().map(|done| mailbox.looked_through().push(done)) {
            self.send(view, refused);
        }
        left.finish().map(Handover::into_blocks)
    }

    /// Sets the bits of blocks. Returns their bytes; `None` if a block is not as it should be, or this is to stop.
    fn collect(&self, blocks: &InTransit, view: &View, bits: &mut Bits<'_>) -> Option<usize> {
        let (mut n, mut bytes) = (0_u32, 0);
        let last = blocks.last(view, |node, class, marked| {
            let block = block_bytes(class);
            n = n.wrapping_add(1);
            let len = match marked {
                Marked::InTransit => 1,
                Marked::Stretch(len) => len as usize,
                // Its thread finds out whether it was free before.
                _ => return false,
            };
            bytes += len * block;
            let is_new = (0..len).all(|index| bits.set(node.addr() + index * block));
            // A block whose bit is set is there twice: it was freed twice.
            is_new && (n % ASKED_EVERY != 0 || !self.is_to_stop())
        });
        last.map(|_| bytes)
    }

    /// Puts blocks back into the inbox that they came from, behind those that have come since; sends them to the owners of their spans, if the heap has ended.
    fn put_back(&self, mailbox: &Mailbox, blocks: InTransit) {
        if let Err(left) = put_back(self.shared, mailbox, blocks) {
            self.send(&self.shared.pages.view(), left);
        }
    }

    /// Sends each block to its span's owner.
    fn send(&self, view: &View, blocks: InTransit) {
        let mut blocks = blocks;
        while let Some(found) = blocks.pop(view, Generation::NONE.tag()) {
            match found {
                Found::Own(block) | Found::Other(block, _) => {
                    let is_suspect = block.is_suspect();
                    self.send_one(block, is_suspect);
                }
                Found::Stretch(stretch) => {
                    for block in stretch.into_blocks() {
                        self.send_one(block, false);
                    }
                }
                Found::Wrong(what, address) => self.report(what, address),
                Found::Lost(_) => {}
            }
        }
    }

    fn send_one(&self, block: FreeBlock, is_suspect: bool) {
        let (class, address) = (block.class(), block.address());
        if let Sent::Refused(page, why) = send::send(self.shared, block, is_suspect, None) {
            self.report(misuse_of(self.shared.pages.layout(), address, class, page, why), address);
        }
    }

    fn report(&self, what: Misuse, address: usize) {
        misuse(self.shared.settings(), what, address, 0);
    }
}

/// Puts blocks back into the inbox that they came from, behind those that have come since.
///
/// # Errors
/// The blocks, if the inbox is closed.
pub(crate) fn put_back<O: Os>(shared: &Shared<O>, mailbox: &Mailbox, blocks: InTransit) -> Result<(), InTransit> {
    let mut blocks = blocks;
    while let Err(left) = mailbox.inbox().put_back(blocks) {
        if mailbox.inbox().is_closed() {
            return Err(left);
        }
        let newer = mailbox.inbox().take_for_owner(|| mailbox.key());
        if newer.is_empty() {
            blocks = left;
            continue;
        }
        let mut n = 0;
        let last = newer.last(&shared.pages.view(), |_, _, _| {
            n += 1;
            n < WALKED_MOST
        });
        // Links that the program has overwritten lead nowhere: what is behind them is lost, as when the heap's thread drains such blocks.
        blocks = match last {
            Some(last) => newer.before(last, left),
            None => newer,
        };
    }
    Ok(())
}

/// Rank of the lock.
pub(crate) const RANK: u8 = 12;

/// Which thread looks through inboxes.
pub(crate) struct Looking {
    lock: Lock<(), Futex, RANK>,
    /// A thread that forks waits for the lock.
    is_forking: AtomicBool,
}

impl Looking {
    /// None.
    pub(crate) const fn new() -> Self {
        Self { lock: Lock::new(()), is_forking: AtomicBool::new(false) }
    }

    /// The right to look, until it is dropped; `None` if another thread has it.
    pub(crate) fn begin(&self) -> Option<impl Drop> {
        self.lock.try_lock()
    }

    /// Takes the lock, before a fork: blocks that are out of their inbox would be lost in the child.
    pub(crate) fn lock_for_fork(&self) {
        self.is_forking.store(true, Ordering::Relaxed);
        self.lock.acquire_raw();
        self.is_forking.store(false, Ordering::Relaxed);
    }

    /// Releases it, in parent or child.
    pub(crate) fn unlock_after_fork(&self, forker: Forker) {
        self.lock.release_raw(forker);
    }
}

mod bits;
mod stretches;
use bits::Bits;
use stretches::{Linking, Purging, Stretches};

#[cfg(test)]
mod tests;
