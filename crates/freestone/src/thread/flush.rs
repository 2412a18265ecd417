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

use crate::central::release_os_pages;
use crate::page::OwnedRun;
use crate::size_class::{N_CLASSES, block_bytes};
use crate::span::blocks::{self, Came, Home};
use crate::span::record::Listed;
use crate::span::{Entry, Layout, Owner, View, os_pages};
use crate::thread::ThreadHeap;
use core::ptr;
use freestone_base::count;
use freestone_base::inbox::Node;
use freestone_base::sync::Ordering;
use freestone_os::Os;

/// Blocks that a bin may always hold in a process of few threads, if they are small: what makes a flush worth its call.
const ALLOWED_LEAST: u32 = 64;

/// Or, if they are larger, what fills so many bytes, but at least [`ALLOWED_LEAST_LARGER`] blocks.
const ALLOWED_LEAST_BYTES: u32 = 4096;

/// See [`ALLOWED_LEAST_BYTES`].
const ALLOWED_LEAST_LARGER: u32 = 8;

/// Threads that may cache as if they were alone.
const FEW_THREADS: u32 = 16;

/// Bytes of one class that all threads beyond that may cache together.
const SHARED_BYTES: usize = 4 << 20;

/// How much of its capacity a bin of blocks of so many bytes may use after `flushed` blocks went home without one being asked for.
fn bin_allowed(capacity: u32, flushed: u32, block_bytes: usize) -> u32 {
    let halvings = (flushed / capacity.max(1)).min(31);
    let least = (ALLOWED_LEAST_BYTES / block_bytes as u32).clamp(ALLOWED_LEAST_LARGER, ALLOWED_LEAST);
    (capacity >> halvings).max(least.min(capacity))
}

impl<O: Os + 'static> ThreadHeap<O> {
    /// What a bin should hold at most, in a process of as many threads as this one.
    pub(crate) fn shared_capacity(&self, class: usize) -> u32 {
        // SAFETY: only heaps that are alive come to a slow path.
        let (capacity, n_heaps) = (self.capacity(class), unsafe { self.shared() }.usage.n_heaps());
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
        let allowed = i64::from(bin_allowed(capacity, flushed.get(), block_bytes(class)));
        let (len, live) = (self.len(class), self.live(class));
        let was_last = self.bins[class].awaits_last.replace(false) && live <= 0;
        if was_last || len >= allowed {
            let is_only_freed = flushed.get() >= capacity;
            let keep = if was_last || is_only_freed { 0 } else { allowed / 2 };
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
    pub(crate) unsafe fn tick(&self, now_ms: u32) {
        // SAFETY: the caller's promise, for all of the body.
        unsafe {
            let Some(decay_ms) = self.shared().settings().decay_ms() else { return };
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
            self.shelf.tick();
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
            // Blocks of any owner may be in the bin: all were handed out before they came here, and the newest view covers them.
            let (layout, view) = (self.layout(), self.renew_view());
            let mut link: *mut *mut Node = self.head(class).as_ptr();
            for _ in 0..keep {
                if (*link).is_null() {
                    return;
                }
                link = ptr::from_mut(&mut (**link).next);
            }
            // Counted, not followed to the end: a block freed twice makes the list a ring.
            let most = u32::try_from(self.len(class) - keep).unwrap_or(0);
            let mut block = core::mem::replace(&mut *link, ptr::null_mut());
            let mut flushed = 0;
            let mut home: Option<Home<'_>> = None;
            while !block.is_null() && flushed < most {
                let next = (*block).next;
                home = match home {
                    Some(same) if same.holds(block) => Some(same),
                    _ => self.home_of(&layout, &view, block, class),
                };
                // One by one while each of them may have been the last of an OS page.
                let together = if self.gives_pages_back.get() { 1 } else { most - flushed };
                let (n, behind) = match &home {
                    Some(home) => self.give_back(&layout, home, block, together),
                    None => (1, next),
                };
                home = home.filter(|_| self.flush_at.get() != 0);
                block = if together == 1 { next } else { behind };
                flushed += n;
            }
            self.turn_to(0);
            self.move_in(class, -i64::from(flushed));
        }
    }

    /// The span of this heap that a block out of the bin of `class` belongs to; a block of another's is sent there.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`]; `block` was in the bin of `class`.
    #[inline]
    unsafe fn home_of<'a>(&self, layout: &'a Layout, view: &View, block: *mut Node, class: usize) -> Option<Home<'a>> {
        // SAFETY: the caller's promise; what has a class in the page map has a record.
        unsafe {
            let page = view.page_of(block.addr());
            let entry = view.entry(block.addr()).unwrap_or(Entry::NONE);
            match (page, entry.class()) {
                (Some(page), Some(_)) if entry.class_if_owned(self.tag()).is_some() => {
                    return Some(self.turn_home(layout, (*layout.record(page as u32)).first.load(Ordering::Relaxed)));
                }
                (_, Some(class)) => self.send(block, class, entry.owner()),
                // Freed once more after its whole span had come home.
                (_, None) => self.refused_unmapped(block, class),
            }
        }
        None
    }

    #[cold]
    fn refused_unmapped(&self, block: *mut Node, class: usize) {
        use crate::misuse::{Misuse, misuse};
        let what = Misuse::DoubleFree { block_bytes: block_bytes(class) };
        // SAFETY: the heap is alive.
        misuse(unsafe { self.shared().settings() }, what, block.addr(), self.number.get());
    }

    /// Turns to a span of this heap, to give blocks back to it.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`]; the small span at `page` is this heap's.
    #[inline]
    pub(crate) unsafe fn turn_home<'a>(&self, layout: &'a Layout, page: u32) -> Home<'a> {
        // SAFETY: the caller's promise.
        unsafe {
            if self.flush_at.get() != page {
                self.turn_to(page);
            }
            Home::at(layout, page)
        }
    }

    /// Puts blocks back into the span of this heap that was turned to: as [`Home::give_back`]. Returns how many are dealt with, and what
    /// comes behind them. When the last one of the span has come home, the span is gone, and turned away from.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`] and [`Home::give_back`].
    #[inline(always)]
    pub(crate) unsafe fn give_back(
        &self,
        layout: &Layout,
        home: &Home<'_>,
        first: *mut Node,
        most: u32,
    ) -> (u32, *mut Node) {
        // SAFETY: the caller's promise.
        unsafe {
            let &Home { page, span, class, .. } = home;
            let Came { n, last, next, refused } = home.give_back(first, most);
            self.take_out(class, -i64::from(n));
            self.note_free(class, i64::from(n));
            if span.listed.get() == Listed::Full && n > 0 {
                self.list_as_partial(layout, home);
            }
            if let Some(refused) = refused {
                let behind = if most > 1 { (*next).next } else { ptr::null_mut() };
                self.refused(next, class, page, refused);
                return (n + 1, behind);
            }
            if span.n_out.get() == 0 {
                self.give_span_back(layout, home);
            } else if self.gives_pages_back.get() && !self.has_emptied.get() {
                let os_page_bytes = self.shared().os().os_page_bytes();
                self.has_emptied.set(os_pages::has_emptied_a_page(layout, page, last, os_page_bytes));
            }
            (n, next)
        }
    }

    /// Moves a full span that has a free block now to the partial ones.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::give_back`].
    #[cold]
    unsafe fn list_as_partial(&self, layout: &Layout, home: &Home<'_>) {
        let spans = &self.spans[home.class];
        // SAFETY: the caller's promise.
        unsafe {
            spans.full.remove(layout, home.page);
            spans.partial.push(layout, home.page);
        }
        home.span.listed.set(Listed::Partial);
    }

    /// Gives a span whose last block has come home to the page heap.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::give_back`].
    #[cold]
    unsafe fn give_span_back(&self, layout: &Layout, home: &Home<'_>) {
        let &Home { page, span, class, .. } = home;
        let spans = &self.spans[class];
        // SAFETY: the caller's promise.
        unsafe {
            if spans.current.get() == page {
                spans.current.set(0);
            } else {
                spans.partial.remove(layout, page);
                span.listed.set(Listed::No);
            }
            self.flush_at.set(0);
            self.has_emptied.set(false);
            self.note_free(class, -i64::from(span.n_free.get()));
            self.publish_live(class);
            self.small_pages.set(self.small_pages.get().saturating_sub(u64::from(span.pages.get())));
            blocks::clear(layout, page);
            self.shared().pages.free(OwnedRun::at(page));
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
            if self.has_emptied.replace(false) {
                let shared = self.shared();
                let class = shared.span(before).class.get() as usize;
                self.note_free(class, -i64::from(release_os_pages(&shared.pages, before)));
            }
            if page == 0 {
                self.look_at_free();
            }
        }
    }

    /// Tells what came free inside this heap's spans, and finds out whether it is too much.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`].
    unsafe fn look_at_free(&self) {
        self.count_free();
        // SAFETY: the caller's promise.
        unsafe {
            let gives = self.shared().usage.exceeds_bound_in_spans(self.shared().settings());
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
            let (shared, layout) = (self.shared(), self.layout());
            let now_ms = shared.os().now_ms() as u32;
            let Some(decay_ms) = shared.settings().decay_ms() else { return };
            if self.last_sweep_ms.get() != 0 && now_ms.wrapping_sub(self.last_sweep_ms.get()) < decay_ms {
                return;
            }
            self.last_sweep_ms.set(now_ms.max(1));
            self.needs_sweep.set(false);
            for (class, spans) in self.spans.iter().enumerate() {
                let current = spans.current.get();
                let current = (current != 0).then(|| (current, shared.span(current)));
                for (page, span) in spans.partial.iter(&layout).chain(current) {
                    if os_pages::is_mostly_free(span) {
                        self.note_free(class, -i64::from(release_os_pages(&shared.pages, page)));
                    }
                }
            }
        }
    }

    /// Frees a small block of another owner. Counted here, sent in batches.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::overflow`]; `block` is a block of `class` that nobody uses any more, and `owner` what its page's entry says.
    pub unsafe fn free_remote(&self, block: *mut u8, class: usize, owner: Owner) {
        count::increment(&self.bins[class].remote_frees);
        // SAFETY: the block is free, of `class`, and `owner` was read from its entry (this function's contract).
        unsafe { self.send(block.cast(), class, owner) };
    }
}
