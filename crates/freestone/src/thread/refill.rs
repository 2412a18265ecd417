//! An empty bin: where blocks come from.
#![allow(unsafe_code)]
//!
//! In this order, each cheaper than the next:
//! 1. the inbox: what other threads sent back;
//! 2. the current span: its free blocks, then one OS page carved from its untouched end;
//! 3. the fullest other partial span, so that the emptier ones may become empty;
//! 4. an abandoned span of the class, or loose blocks; not for an explicit heap, which is deleted with all it has;
//! 5. a new span.
//!
//! A batch is half the bin's capacity: its number is known before the bitmap is walked, and it is linked in one pass.
//! A bin that was flushed since it was last empty was too small for its program: its capacity grows by what was flushed.
//! When memory is short the answer is null, and what was in the bins is still there.
//!
//! # Safety
//! Spans in this heap's lists are its own; the caller is the heap's thread, and the heap is alive.

use crate::size_class::{block_bytes, span_pages};
use crate::span::blocks::{self, Chain};
use crate::span::record::Listed;
use crate::span::{Entry, Kind};
use crate::thread::ThreadHeap;
use crate::thread::outbox::Sent;
use core::ptr;
use freestone_base::inbox::Node;
use freestone_base::prefetch;
use freestone_base::sync::Ordering;
use freestone_os::Os;

/// Partial spans looked at for the fullest.
const SEARCHED: usize = 8;

impl<O: Os + 'static> ThreadHeap<O> {
    /// Fills an empty bin and takes a block from it; null when memory runs out.
    ///
    /// # Safety
    /// - The heap is alive, and the caller is its thread.
    #[cold]
    #[must_use]
    pub unsafe fn refill(&self, class: usize) -> *mut u8 {
        // SAFETY: the caller's promise, for all of the body.
        unsafe {
            self.drain();
            let block = self.pop(class);
            if !block.is_null() {
                return block;
            }
            self.comes_down.set(false);
            self.learn_capacity(class);
            self.bring_batch(class);
        }
        self.pop(class)
    }

    /// Brings a batch of blocks into a bin, if there is memory for one.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::refill`].
    unsafe fn bring_batch(&self, class: usize) {
        let capacity = self.shared_capacity(class);
        // SAFETY: the heap is alive and this thread's (the contract of `refill`); the chain's blocks are free and this heap's to hand out.
        unsafe {
            let chain = self.take_batch(class, (capacity / 2).max(1));
            if chain.len == 0 {
                return;
            }
            // A new span brings the decay tick, which drains the inbox into the bins: what it put into this one stays behind the batch.
            (*chain.last).next = self.head(class).replace(chain.first);
            self.move_in(class, i64::from(chain.len));
            let lacks = (i64::from(capacity) - self.len(class)).max(i64::from(capacity / 2));
            self.grant(class, lacks);
        }
    }

    /// Takes what other threads sent back into the bins.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::refill`].
    pub(crate) unsafe fn drain(&self) {
        let mut block = self.inbox.take();
        if block.is_null() {
            return;
        }
        // SAFETY: the chain is ours; its blocks are in transit, and were handed out before they were sent: the newest view covers them.
        unsafe {
            self.renew_view();
            while !block.is_null() {
                let next = (*block).next;
                prefetch::for_write((*block.cast::<Sent>()).ahead);
                self.take_home(block);
                block = next;
            }
        }
    }

    /// Puts a block in transit into its bin, or sends it on if its span has another owner by now.
    ///
    /// # Safety
    /// - `block` is a small block in transit; see also [`ThreadHeap::refill`].
    unsafe fn take_home(&self, block: *mut Node) {
        // SAFETY: the block is in a span, which has entries and a record; it is this thread's.
        unsafe {
            let entry = self.view().entry(block.addr()).unwrap_or(Entry::NONE);
            match (entry.class_if_owned(self.tag()), entry.class()) {
                (Some(class), _) => {
                    (*block).next = self.head(class).get();
                    self.head(class).set(block);
                    self.move_in(class, 1);
                    if self.len(class) > 2 * i64::from(self.capacity(class)) {
                        self.overflow(class);
                    }
                }
                (None, Some(class)) => self.send(block, class, entry.owner()),
                (None, None) => {}
            }
        }
    }

    /// Makes a bin that was flushed since it was last empty as large as it would have had to be.
    fn learn_capacity(&self, class: usize) {
        let flushed = self.bins[class].flushed.replace(0);
        if flushed > 0 {
            // SAFETY: the heap is alive.
            let most = unsafe { self.shared() }.settings().bin_max(block_bytes(class));
            self.bins[class].capacity.set(self.capacity(class).saturating_add(flushed).min(most));
        }
    }

    /// Up to `n` blocks of a class, from the first source that has any.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::refill`].
    unsafe fn take_batch(&self, class: usize, n: u32) -> Chain {
        // SAFETY: the caller's promise; the current span is ours.
        unsafe {
            let (shared, layout) = (self.shared(), self.layout());
            let spans = &self.spans[class];
            let os_page_bytes = shared.os().os_page_bytes();
            loop {
                let page = spans.current.get();
                if page != 0 {
                    let span = shared.span(page);
                    let chain = match span.n_free.get() {
                        0 => blocks::carve(&layout, page, os_page_bytes),
                        n_free => {
                            self.note_free(class, -i64::from(n.min(n_free)));
                            blocks::take(&layout, page, n.min(n_free))
                        }
                    };
                    if chain.len > 0 {
                        self.take_out(class, i64::from(chain.len));
                        return chain;
                    }
                    span.listed.set(Listed::Full);
                    spans.full.push(&layout, page);
                    spans.current.set(0);
                }
                let mut next = self.fullest_partial(class);
                if next == 0 && !self.is_explicit() {
                    next = shared
                        .central
                        .adopt(&shared.pages, class, ptr::from_ref(self).cast_mut().cast(), self.owner())
                        .unwrap_or(0);
                    if next == 0 {
                        let loose = shared.central.take_orphaned(class);
                        if loose.len > 0 {
                            return loose;
                        }
                    }
                }
                if next == 0 {
                    let Some(page) = self.new_span(class) else { return Chain::EMPTY };
                    next = page;
                }
                shared.span(next).listed.set(Listed::No);
                spans.current.set(next);
                // It may be beyond the reach that this heap's view had.
                self.renew_view();
            }
        }
    }

    /// The partial span with the most blocks out, of the first few; taken out of the list. 0 if there is none.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::refill`].
    unsafe fn fullest_partial(&self, class: usize) -> u32 {
        let partial = &self.spans[class].partial;
        // SAFETY: the caller's promise.
        unsafe {
            let layout = self.layout();
            let fullest = partial.iter(&layout).take(SEARCHED).max_by_key(|(_, span)| span.n_out.get());
            match fullest {
                Some((page, _)) => {
                    partial.remove(&layout, page);
                    page
                }
                None => 0,
            }
        }
    }

    /// A span of a class, fresh from the page heap. On this rare way everything collected for others is handed over, and what the
    /// program holds is published.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::refill`].
    unsafe fn new_span(&self, class: usize) -> Option<u32> {
        // SAFETY: the caller's promise.
        unsafe { self.tick(self.now_ms()) };
        self.send_all();
        self.publish_live(class);
        // SAFETY: the caller's promise; the run is ours once allocated, and nobody knows of it before the map says so.
        unsafe {
            let (shared, layout) = (self.shared(), self.layout());
            let pages = span_pages(class).0.max(shared.settings().span_pages());
            if !self.may_have(pages) {
                return None;
            }
            let run = shared.pages.allocate(pages, 1, Kind::Small)?;
            self.small_pages.set(self.small_pages.get() + u64::from(pages));
            blocks::format(&layout, run.page, class, shared.os().os_page_bytes(), !run.zero);
            for page in run.page..run.page + pages {
                shared.span(page).first.store(run.page, Ordering::Relaxed);
            }
            shared.span(run.page).owner.store(ptr::from_ref(self).cast_mut().cast(), Ordering::Release);
            layout.map.set(run.page, pages, Entry::small(self.owner(), class as u8));
            Some(run.page)
        }
    }
}

#[cfg(test)]
mod tests;
