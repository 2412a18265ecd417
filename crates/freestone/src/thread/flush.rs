//! A full bin: where blocks go.
#![allow(unsafe_code)]
//!
//! The hotter half stays; the rest is sorted, block by block, into this heap's spans or the outbox. A span whose last block came home
//! goes back to the page heap, unless it is the current one.
//!
//! This is where a wrong free of a small block is seen: its span refuses it, and it is named.
//!
//! # Safety
//! As in `refill`.

use crate::span::blocks;
use crate::span::record::Listed;
use crate::thread::ThreadHeap;
use crate::thread::outbox::span_page;
use core::ptr;
use freestone_base::count;
use freestone_base::inbox::Node;
use freestone_os::Os;

impl<O: Os + 'static> ThreadHeap<O> {
    /// Looks at a bin whose room is used up: flushes it if it is full, and gives it room again.
    ///
    /// # Safety
    /// - The heap is alive, and the caller is its thread.
    #[cold]
    pub unsafe fn overflow(&self, class: usize) {
        let capacity = i64::from(self.capacity(class));
        if self.len(class) >= capacity {
            self.bins[class].overflowed.set(true);
            // SAFETY: the caller's promise.
            unsafe { self.flush(class, capacity / 2) };
        }
        self.grant(class, (capacity - self.len(class)).max(1));
    }

    /// Puts a block into its bin whatever the room, and sees to the bin: for frees whose quick way was closed.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`]; `block` is a block of `class` that nobody uses any more.
    pub unsafe fn push_slow(&self, class: usize, block: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.push(class, block) {
                self.overflow(class);
            }
        }
    }

    /// Sends all but the first `keep` blocks of a bin home.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`].
    pub unsafe fn flush(&self, class: usize, keep: i64) {
        // SAFETY: the caller's promise; blocks in the bin are free and linked.
        unsafe {
            let mut link: *mut *mut Node = self.head(class).as_ptr();
            for _ in 0..keep {
                if (*link).is_null() {
                    return;
                }
                link = ptr::from_mut(&mut (**link).next);
            }
            let mut block = core::mem::replace(&mut *link, ptr::null_mut());
            let mut flushed = 0;
            while !block.is_null() {
                let next = (*block).next;
                self.send_home(block, class);
                block = next;
                flushed += 1;
            }
            self.move_in(class, -flushed);
        }
    }

    /// Sends one block, out of any bin, home.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`]; `block` was in the bin of `class`.
    unsafe fn send_home(&self, block: *mut Node, class: usize) {
        let layout = self.layout();
        // SAFETY: the caller's promise; the map is committed for the whole window.
        unsafe {
            let entry = match layout.page_of(block.addr()) {
                Some(page) => layout.map.get(page),
                None => crate::span::Entry::NONE,
            };
            match entry.class() {
                Some(_) if entry.class_if_owned(self.tag()).is_some() => {
                    self.give_back(span_page(self.central(), block), block)
                }
                Some(class) => self.send(block, class),
                // Freed once more after its whole span had come home.
                None => self.refused_unmapped(block, class),
            }
        }
    }

    #[cold]
    fn refused_unmapped(&self, block: *mut Node, class: usize) {
        use crate::misuse::{Misuse, misuse};
        let what = Misuse::DoubleFree { block_bytes: crate::size_class::block_bytes(class) };
        // SAFETY: the heap is alive.
        misuse(unsafe { &self.central().settings }, what, block.addr(), self.number.get());
    }

    /// Puts a block back into a span of this heap.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`]; the span at `page` is this heap's and `block` lies in it.
    pub(crate) unsafe fn give_back(&self, page: u32, block: *mut Node) {
        // SAFETY: the caller's promise.
        unsafe {
            let (central, layout) = (self.central(), self.layout());
            let span = central.span(page);
            let class = span.class.get() as usize;
            if let Err(refused) = blocks::give_back(&layout, page, block) {
                return self.refused(block, class, page, refused);
            }
            self.take_out(class, -1);
            let spans = &self.spans[class];
            if span.listed.get() == Listed::Full {
                spans.full.remove(&layout, page);
                spans.partial.push(&layout, page);
                span.listed.set(Listed::Partial);
            }
            if span.n_out.get() == 0 && span.listed.get() == Listed::Partial {
                spans.partial.remove(&layout, page);
                span.listed.set(Listed::No);
                self.publish_live();
                blocks::clear(&layout, page);
                central.pages.free(page, &central.settings);
            }
        }
    }

    /// Frees a small block of another owner. Counted here, sent in batches.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`]; `block` is a block of `class` that nobody uses any more.
    pub unsafe fn free_remote(&self, block: *mut u8, class: usize) {
        count::increment(&self.bins[class].remote_frees);
        // SAFETY: the caller's promise.
        unsafe { self.send(block.cast(), class) };
    }
}
