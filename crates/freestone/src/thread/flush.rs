//! A full bin: where blocks go.
#![allow(unsafe_code)]
//!
//! The hotter half stays; the rest is sorted, block by block, into this heap's spans or the outbox. A span whose last block came home
//! goes back to the page heap. When more is free inside spans than the dirty bound allows, a span that is mostly free gives back the OS
//! pages in which no block is out: when the flush turns to another span, so that a stretch goes at once. Whoever gives a block back
//! outside a flush turns away from its span at once.
//!
//! A thread that had more of a class than its bin holds, and frees all of it, has had a burst, and may sleep from the last free on, when
//! nobody else can empty its bins. So a bin that was flushed gets room only until the thread's last block of the class is freed: that
//! free comes here, and empties it. `docs/decisions/0008-the-last-block-of-a-burst.md`.
//!
//! This is where a wrong free of a small block is seen: its span refuses it, and it is named.
//!
//! # Safety
//! As in `refill`.

use crate::size_class::{N_CLASSES, block_bytes};
use crate::span::blocks;
use crate::span::record::Listed;
use crate::thread::ThreadHeap;
use crate::thread::outbox::span_page;
use core::ptr;
use freestone_base::count;
use freestone_base::inbox::Node;
use freestone_os::Os;

/// Blocks that a bin may always hold in a process of few threads: what makes a flush worth its call.
const ALLOWED_LEAST: u32 = 8;

/// Threads that may cache as if they were alone.
const FEW_THREADS: u32 = 16;

/// Bytes of one class that all threads beyond that may cache together.
const SHARED_BYTES: usize = 4 << 20;

/// How much of its capacity a bin may use after `flushed` blocks went home without one being asked for.
fn bin_allowed(capacity: u32, flushed: u32) -> u32 {
    let halvings = (flushed / capacity.max(1)).min(31);
    (capacity >> halvings).max(ALLOWED_LEAST.min(capacity))
}

impl<O: Os + 'static> ThreadHeap<O> {
    /// What a bin should hold at most, in a process of as many threads as this one.
    pub(crate) fn shared_capacity(&self, class: usize) -> u32 {
        // SAFETY: only heaps that are alive come to a slow path.
        let (capacity, n_heaps) = (self.capacity(class), unsafe { self.central() }.n_heaps());
        if n_heaps <= FEW_THREADS {
            return capacity;
        }
        let share = SHARED_BYTES / n_heaps as usize / block_bytes(class);
        capacity.min(share as u32).max(1)
    }

    /// Looks at a bin whose room is used up: flushes it if it is full, and gives it room again.
    ///
    /// A thread that frees and frees is not going to want these blocks soon, and each of them holds an OS page: the bin is allowed less
    /// and less of its capacity until it is next empty.
    ///
    /// # Safety
    /// - The heap is alive, and the caller is its thread.
    #[cold]
    pub unsafe fn overflow(&self, class: usize) {
        let (capacity, flushed) = (self.shared_capacity(class), &self.bins[class].flushed);
        let allowed = i64::from(bin_allowed(capacity, flushed.get()));
        let (len, live) = (self.len(class), self.live(class));
        let was_last = self.bins[class].awaits_last.replace(false) && live <= 0;
        if was_last || len >= allowed {
            let keep = if was_last { 0 } else { allowed / 2 };
            flushed.set(flushed.get().saturating_add(u32::try_from(len - keep).unwrap_or(u32::MAX)));
            // SAFETY: the caller's promise.
            unsafe { self.flush(class, keep) };
        }
        if was_last {
            // SAFETY: as above.
            unsafe { self.come_down() };
        }
        self.grant(class, (allowed - self.len(class)).max(0));
        if flushed.get() > 0 || self.comes_down.get() {
            self.await_last(class);
        }
    }

    /// Sees to it that a bin is looked at when the last block that the thread has of its class is freed.
    fn await_last(&self, class: usize) {
        let live = self.live(class);
        if live > 0 && live <= self.room(class) + 1 {
            self.grant(class, live - 1);
            self.bins[class].awaits_last.set(true);
        }
    }

    /// The thread had more of a class than its bin holds, and has freed the last of it: a burst is over. Bins that are not used any more
    /// are emptied, now or when the last of their class is freed, so that nothing of it stays with a thread that goes idle.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`].
    unsafe fn come_down(&self) {
        self.comes_down.set(true);
        let mut awaits = false;
        // SAFETY: the caller's promise.
        unsafe {
            for class in 0..N_CLASSES {
                if self.live(class) <= 0 && self.len(class) > 0 {
                    self.flush(class, 0);
                } else {
                    self.await_last(class);
                }
                awaits |= self.bins[class].awaits_last.get();
            }
            if !awaits {
                self.sweep();
            }
        }
    }

    /// The decay tick: once in a decay time, on the way to the page heap, bins that nobody took from since the last one are sent home, and
    /// what was collected for others is handed over. An active bin keeps its blocks.
    ///
    /// # Safety
    /// - The heap is alive, and the caller is its thread.
    pub(crate) unsafe fn tick(&self) {
        // SAFETY: the caller's promise, for all of the body.
        unsafe {
            let central = self.central();
            let now_ms = central.pages.os().now_ms() as u32;
            let Some(decay_ms) = central.pages.settings.decay_ms() else { return };
            if now_ms.wrapping_sub(self.last_tick_ms.get()) < decay_ms {
                return;
            }
            self.last_tick_ms.set(now_ms);
            self.drain();
            for class in 0..N_CLASSES {
                let allocs = self.allocs(class);
                if self.bins[class].allocs_at_tick.replace(allocs) == allocs && !self.head(class).get().is_null() {
                    self.flush(class, 0);
                }
            }
            self.send_all();
        }
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
            // Counted, not followed to the end: a block freed twice makes the list a ring.
            let most = self.len(class) - keep;
            let mut block = core::mem::replace(&mut *link, ptr::null_mut());
            let mut flushed = 0;
            while !block.is_null() && flushed < most {
                let next = (*block).next;
                self.send_home(block, class);
                block = next;
                flushed += 1;
            }
            self.turn_to(0);
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
        let what = Misuse::DoubleFree { block_bytes: block_bytes(class) };
        // SAFETY: the heap is alive.
        misuse(unsafe { &self.central().pages.settings }, what, block.addr(), self.number.get());
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
            if self.flush_at.get() != page {
                self.turn_to(page);
            }
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
            self.note_free(class, 1);
            if span.n_out.get() == 0 {
                if spans.current.get() == page {
                    spans.current.set(0);
                } else {
                    spans.partial.remove(&layout, page);
                    span.listed.set(Listed::No);
                }
                self.flush_at.set(0);
                self.has_emptied.set(false);
                self.note_free(class, -i64::from(span.n_free.get()));
                self.publish_live();
                self.small_pages.set(self.small_pages.get().saturating_sub(u64::from(span.pages.get())));
                blocks::clear(&layout, page);
                central.pages.free(page);
            } else if self.gives_pages_back.get() && !self.has_emptied.get() {
                let os_page_bytes = central.pages.os().os_page_bytes();
                self.has_emptied.set(blocks::has_emptied_a_page(&layout, page, block, os_page_bytes));
            }
        }
    }

    /// Turns to another span (0: none): the OS pages that came free in the one before go back, if too much is free inside spans.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`]; spans given back since are not the one that was turned to last.
    pub(crate) unsafe fn turn_to(&self, page: u32) {
        let before = self.flush_at.replace(page);
        // SAFETY: the caller's promise.
        unsafe {
            let central = self.central();
            if self.has_emptied.replace(false) {
                let class = central.span(before).class.get() as usize;
                self.note_free(class, -i64::from(central.release_pages(before)));
            }
            self.count_free();
            let gives = central.is_too_much_in_spans();
            if gives && !self.gives_pages_back.replace(gives) {
                self.needs_sweep.set(true);
            }
            self.gives_pages_back.set(gives);
            if self.needs_sweep.get() {
                self.sweep();
            }
        }
    }

    /// Gives back the OS pages of spans that came free while the bound was not passed; once in a decay time at most.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`].
    #[cold]
    unsafe fn sweep(&self) {
        // SAFETY: the caller's promise; the lists are this heap's, and stay as they are.
        unsafe {
            let (central, layout) = (self.central(), self.layout());
            let now_ms = central.pages.os().now_ms() as u32;
            let Some(decay_ms) = central.pages.settings.decay_ms() else { return };
            if self.last_sweep_ms.get() != 0 && now_ms.wrapping_sub(self.last_sweep_ms.get()) < decay_ms {
                return;
            }
            self.last_sweep_ms.set(now_ms.max(1));
            self.needs_sweep.set(false);
            for (class, spans) in self.spans.iter().enumerate() {
                let current = spans.current.get();
                let current = (current != 0).then(|| (current, central.span(current)));
                for (page, span) in spans.partial.iter(&layout).chain(current) {
                    if blocks::is_mostly_free(span) {
                        self.note_free(class, -i64::from(central.release_pages(page)));
                    }
                }
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
