//! The central lists: spans without an owner, one pair of lists per size class.
#![allow(unsafe_code)]
//!
//! ```text
//!            abandon                        adopt
//!  thread ───────────▶ available / full ───────────▶ thread
//!                          ▲     │
//!                  free ───┘     └─ no block is out ─▶ page heap
//!
//!  a span that gets a block back ─▶ freed ── its empty OS pages go back, if it is mostly free ─▶ available
//! ```
//!
//! A thread that exits abandons its spans that still have blocks out; a thread that needs a span of the class adopts one. A block freed in
//! between goes back to its span here, under the lock of the class. Where spans are shared (`thread::sharing`), threads take blocks out of them here, too, and adopt none. After a fork, the child has blocks whose spans belong to threads that do
//! not exist there and may have been changing the spans at the moment of the fork. When such an orphaned block is freed, it does not go back to
//! its span; it is kept in a chain per class, and handed out again from there (`thread::orphaned`).
//!
//! Invariants: a span is in a list exactly while its owner is null, and then its page map entries say `ABANDONED`. The spans in `available` and `freed`
//! have a block to give. `n_available` counts them; read without the lock it is a hint.
//! Long because: whatever happens to a span in a list happens here, under the lock of its class.
//!
//! Layer: above `page`, below `shared`. Locks: one per class, rank [`RANK`], taken before the page heap's.
//!
//! # Safety
//! Only the holder of the lock of its class may touch a span in a list.

use crate::page::PageHeap;
use crate::size_class::{N_CLASSES, PerClass, block_bytes};
use crate::span::blocks::{self, Home, Refused, Taken};
use crate::span::free_node::{self, Chain};
use crate::span::os_pages::EmptyStretches;
use crate::span::record::Listed;
use crate::span::{Entry, Generation, GoneBytes, Layout, OwnedSpan, PageIndex, Span, SpanList, os_pages};
use crate::usage::Usage;
use core::ffi::c_void;
use core::{mem, ptr};
use freestone_base::inbox::{LinkKey, Node};
use freestone_base::lock::{Forker, Guard, Lock};
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering};
use freestone_os::{Futex, Os};

/// Rank of the locks of the classes.
pub(crate) const RANK: u8 = 20;

/// After so many bytes the lock of a class is released, for others to take: giving them back takes a few milliseconds.
const RELEASED_AT_ONCE: i64 = 16 << 20;

/// After so many frees that emptied OS pages these go back together: a call for each would be most of what such a free costs.
const EMPTIED_AT_ONCE: u32 = 16;

/// The most bytes that a free gives back, those of the last span aside.
const FREED_AT_ONCE: i64 = 1 << 20;

/// To look at a span takes about as long as to give back so many bytes.
const LOOK_BYTES: i64 = 4096;

/// Rank of the lock of orphaned heaps.
pub(crate) const ORPHAN_RANK: u8 = 18;

/// The mailbox of an orphaned heap, as `Span::owner` has it; null if there is none.
pub(crate) struct Orphan(pub(crate) *mut c_void);

/// The lock of [`Orphan`], held.
pub(crate) type OrphanGuard<'a> = Guard<'a, Orphan, Futex, ORPHAN_RANK>;

// SAFETY: any thread may use a mailbox.
unsafe impl Send for Orphan {}

/// One class's spans without an owner, and its orphaned blocks.
#[derive(Debug)]
struct ClassLists {
    freed: SpanList,
    available: SpanList,
    full: SpanList,
    orphaned: Chain,
    /// Frees that emptied OS pages while too much was free in spans, since some last went back.
    n_emptied: u32,
    /// Since all spans gave theirs back, blocks were freed.
    has_freed: bool,
    /// As [`GoneBytes`] says, of spans that ended here.
    gone: GoneBytes,
}

impl ClassLists {
    /// The list of the spans that say so.
    fn of(&self, listed: Listed) -> &SpanList {
        match listed {
            Listed::Freed => &self.freed,
            Listed::Full => &self.full,
            Listed::Partial | Listed::No => &self.available,
        }
    }

    /// The list that the next block comes from: what was just freed is in the processor's cache.
    fn next(&self) -> &SpanList {
        if self.freed.is_empty() { &self.available } else { &self.freed }
    }
}

// SAFETY: the lists hold page numbers, and the chain links free blocks that no thread has; both may move between threads.
unsafe impl Send for ClassLists {}

/// The spans of every class that have no owner. See the module header.
pub(crate) struct CentralLists {
    classes: PerClass<Lock<ClassLists, Futex, RANK>>,
    n_available: PerClass<AtomicU32>,
    /// When a thread last had OS pages of all classes go back; 0: never.
    swept_ms: AtomicU32,
    /// There are orphaned heaps: there may be orphaned blocks.
    has_orphaned: AtomicBool,
    /// The orphaned heap to look at next. Its lock is held while blocks are out of inboxes and chains: a fork would lose them.
    orphan: Lock<Orphan, Futex, ORPHAN_RANK>,
}

/// The result of [`CentralLists::free`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreeOutcome {
    /// The block is back in its span.
    Freed,
    /// Its span has an owner again, so the block still has to go there.
    Adopted,
    /// The address is not that of an allocated block.
    Refused(Refused),
}

impl CentralLists {
    /// Empty lists.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            classes: PerClass::new(
                [const {
                    Lock::new(ClassLists {
                        freed: SpanList::new(),
                        available: SpanList::new(),
                        full: SpanList::new(),
                        orphaned: Chain::EMPTY,
                        n_emptied: 0,
                        has_freed: false,
                        gone: GoneBytes::none(),
                    })
                }; N_CLASSES],
            ),
            n_available: PerClass::new([const { AtomicU32::new(0) }; N_CLASSES]),
            swept_ms: AtomicU32::new(0),
            has_orphaned: AtomicBool::new(false),
            orphan: Lock::new(Orphan(ptr::null_mut())),
        }
    }

    /// Takes a span over from a thread that exits; it is in no list, and none of its blocks are in bins. A span with no block out goes to the page
    /// heap.
    pub(crate) fn abandon<O: Os>(&self, pages: &PageHeap<O>, usage: &Usage, span: OwnedSpan<'_>) {
        if span.n_out.get() == 0 {
            return free_empty_span(pages, usage, span);
        }
        let class = span.class.get();
        let mut lists = self.classes[class as usize].lock();
        lists.has_freed = true;
        // It may be new, made to be left.
        lists.gone.take_again(&span, &pages.uncarved);
        usage.count_left_out(class as usize, i64::from(span.n_out.get()));
        span.owner.store(ptr::null_mut(), Ordering::Relaxed);
        span.set_entries(Entry::small(Generation::ABANDONED, class));
        // Blocks of it may have been freed before.
        let listed = if is_full(&span) { Listed::Full } else { Listed::Freed };
        self.list(&lists, class as usize, &span, listed);
    }

    /// Makes `owner`, of `generation`, the owner of a span of `class` that has a block to give. Returns the span; `None` if there is none.
    pub(crate) fn adopt<'a, O: Os>(
        &self,
        pages: &'a PageHeap<O>,
        usage: &Usage,
        class: usize,
        owner: *mut c_void,
        generation: Generation,
    ) -> Option<OwnedSpan<'a>> {
        if self.n_available[class].load(Ordering::Relaxed) == 0 {
            return None;
        }
        let lists = self.classes[class].lock();
        let page = lists.next().first()?;
        // SAFETY: the span is in a list, and the lock of its class is held.
        let span = unsafe { OwnedSpan::at(pages.layout(), page) };
        self.unlist(&lists, class, &span);
        usage.count_left_out(class, -i64::from(span.n_out.get()));
        span.set_entries(Entry::small(generation, class as u8));
        span.owner.store(owner, Ordering::Release);
        Some(span)
    }

    /// Takes up to `n` blocks of a class, linked with `key`, out of a span that has no owner and stays without one; `None` if no such span has a block to give.
    pub(crate) fn take<O: Os>(
        &self,
        pages: &PageHeap<O>,
        usage: &Usage,
        (class, n): (usize, u32),
        key: LinkKey,
    ) -> Option<Taken> {
        if self.n_available[class].load(Ordering::Relaxed) == 0 {
            return None;
        }
        let lists = self.classes[class].lock();
        loop {
            let page = lists.next().first()?;
            // SAFETY: the span is in a list, and the lock of its class is held.
            let span = unsafe { OwnedSpan::at(pages.layout(), page) };
            let taken = blocks::take_few(&span, n, pages.os().os_page_bytes(), key, &pages.uncarved);
            if is_full(&span) {
                self.move_to(&lists, class, &span, Listed::Full);
            }
            if taken.chain.len > 0 {
                usage.count_left_out(class, i64::from(taken.chain.len));
                usage.add_free_in_spans(-taken.less_free * block_bytes(class) as i64);
                return Some(taken);
            }
        }
    }

    /// Puts a block back into its span, if the span has no owner. A span with no block out any more goes to the page heap.
    ///
    /// # Safety
    /// - `block` lies in the small span of `class` that starts at `page`; if it is a block that is out, it is the caller's.
    pub(crate) unsafe fn free<O: Os>(
        &self,
        pages: &PageHeap<O>,
        usage: &Usage,
        page: PageIndex,
        class: usize,
        block: *mut Node,
    ) -> FreeOutcome {
        let mut lists = self.classes[class].lock();
        // SAFETY: the span is in use, for a block of it is out, so it has a record. The lock of its class is held: without an owner it is in our
        // lists; and if it has one, only `owner` is read.
        let span = unsafe { OwnedSpan::at(pages.layout(), page) };
        if !span.owner.load(Ordering::Relaxed).is_null() {
            return FreeOutcome::Adopted;
        }
        let home = Home::of(span);
        // SAFETY: the block lies in the span and is the caller's (this function's contract).
        if let Err(refused) = unsafe { home.give_back(block, LinkKey::PLAIN) } {
            return FreeOutcome::Refused(refused);
        }
        let (index, span) = (home.index_of(block.addr()), home.span);
        usage.count_left_out(class, -1);
        let block_bytes = block_bytes(class) as i64;
        usage.add_free_in_spans(block_bytes);
        lists.has_freed = true;
        if span.n_out.get() == 0 {
            self.unlist(&lists, class, &span);
            lists.gone.count(&span, pages.os().os_page_bytes());
            drop(lists);
            free_empty_span(pages, usage, span);
            return FreeOutcome::Freed;
        }
        self.move_to(&lists, class, &span, Listed::Freed);
        if usage.exceeds_bound_in_spans(&pages.settings, false) {
            let is_emptied = os_pages::has_emptied_a_page(&span, index, pages.os().os_page_bytes());
            lists.n_emptied = lists.n_emptied.saturating_add(u32::from(is_emptied));
            let are_enough = is_emptied && lists.n_emptied >= EMPTIED_AT_ONCE;
            let excess = if are_enough { pages.beyond_what_was_in_vain(usage) } else { 0 };
            if excess > 0 {
                lists.n_emptied = 0;
                self.release_listed(pages, usage, &mut lists, (class, excess.min(FREED_AT_ONCE), false));
            }
        }
        FreeOutcome::Freed
    }

    /// Moves a span of `class` that is in a list to another one.
    fn move_to(&self, lists: &ClassLists, class: usize, span: &OwnedSpan<'_>, to: Listed) {
        if span.listed.get() != to {
            self.unlist(lists, class, span);
            self.list(lists, class, span, to);
        }
    }

    /// Puts a span of `class` that is in no list into one.
    fn list(&self, lists: &ClassLists, class: usize, span: &OwnedSpan<'_>, to: Listed) {
        span.listed.set(to);
        lists.of(to).push(span);
        if to != Listed::Full {
            self.n_available[class].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes a span of `class` out of its list.
    fn unlist(&self, lists: &ClassLists, class: usize, span: &OwnedSpan<'_>) {
        let from = span.listed.replace(Listed::No);
        lists.of(from).remove(span);
        if from != Listed::Full {
            self.n_available[class].fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether no thread has begun within a decay time to have OS pages of all classes go back; the calling one begins now.
    pub(crate) fn begin_sweep(&self, now_ms: u32, decay_ms: u32) -> bool {
        let begins = is_due(self.swept_ms.load(Ordering::Relaxed), now_ms, decay_ms);
        if begins {
            self.swept_ms.store(now_ms.max(1), Ordering::Relaxed);
        }
        begins
    }

    /// Gives back OS pages in which no block is out: about so many bytes, of spans that are mostly free, but no more than [`RELEASED_AT_ONCE`]; or all.
    #[cold]
    pub(crate) fn release_os_pages<O: Os>(&self, pages: &PageHeap<O>, usage: &Usage, bytes: Option<i64>) {
        let mut left = bytes.map_or(i64::MAX, |bytes| bytes.min(RELEASED_AT_ONCE));
        for class in 0..N_CLASSES {
            let has_some = || self.n_available[class].load(Ordering::Relaxed) > 0;
            while left > 0 && has_some() {
                let most = left.min(RELEASED_AT_ONCE);
                let mut lists = self.classes[class].lock();
                let spent = self.release_listed(pages, usage, &mut lists, (class, most, bytes.is_none()));
                drop(lists);
                left -= spent;
                if spent < most {
                    break;
                }
                if left > 0 {
                    // Who has waited for the lock would find it taken again.
                    Futex::wait_for(&AtomicU32::new(0), 0, Some(1));
                }
            }
        }
    }

    /// As [`CentralLists::release_os_pages`], of one class, under its lock, and no more than `most` bytes but for those of a span. Returns how many bytes went back, and
    /// [`LOOK_BYTES`] for each span that was looked at; less than `most` if that was all.
    fn release_listed<O: Os>(
        &self,
        pages: &PageHeap<O>,
        usage: &Usage,
        lists: &mut ClassLists,
        (class, most, of_all): (usize, i64, bool),
    ) -> i64 {
        let of_others = of_all && mem::take(&mut lists.has_freed);
        // SAFETY: the spans are in lists, and the lock of their class is held.
        let span_at = |page| unsafe { OwnedSpan::at(pages.layout(), page) };
        while let Some(page) = lists.available.first().filter(|_| of_others) {
            self.move_to(lists, class, &span_at(page), Listed::Freed);
        }
        let mut stretches = EmptyStretches::new();
        let (mut n_looked, mut n_released) = (0, 0);
        let spent = |n_looked, n_released| n_looked * LOOK_BYTES + n_released * block_bytes(class) as i64;
        while spent(n_looked, n_released) < most {
            let Some(span) = lists.freed.first().map(span_at) else { break };
            self.move_to(lists, class, &span, Listed::Partial);
            n_looked += 1;
            if of_all || os_pages::is_mostly_free(&span) {
                n_released += i64::from(release_os_pages(pages, &span, &mut stretches));
            }
        }
        usage.add_free_in_spans(-spent(0, n_released));
        pages.purge_inside(&mut stretches);
        if stretches.were_kept() { 0 } else { spent(n_looked, n_released) }
    }

    /// Keeps orphaned blocks of `class`, whose spans are not to be touched. All that are kept are marked as in a bin and linked with the same `key`.
    ///
    /// # Safety
    /// - The blocks are linked from first to last, of `class`, free, and the caller's.
    pub(crate) unsafe fn keep_orphaned(&self, class: usize, mut blocks: Chain, key: LinkKey) {
        if blocks.len == 0 {
            return;
        }
        let mut lists = self.classes[class].lock();
        let kept = lists.orphaned;
        if kept.len > 0 {
            // SAFETY: the last block is the caller's and free.
            unsafe { free_node::write_in_bin(blocks.last, kept.first, key) };
            (blocks.last, blocks.len) = (kept.last, blocks.len + kept.len);
        }
        lists.orphaned = blocks;
    }

    /// Takes all orphaned blocks of `class`; none if another thread holds the lock of the class.
    pub(crate) fn take_orphaned(&self, class: usize) -> Chain {
        match self.classes[class].try_lock() {
            Some(mut lists) => mem::replace(&mut lists.orphaned, Chain::EMPTY),
            None => Chain::EMPTY,
        }
    }

    /// Whether there are orphaned heaps.
    #[inline(always)]
    pub(crate) fn has_orphaned(&self) -> bool {
        self.has_orphaned.load(Ordering::Relaxed)
    }

    /// The orphaned heap to look at next: for who makes a heap one, or looks for blocks of others.
    pub(crate) fn lock_orphan(&self) -> OrphanGuard<'_> {
        self.has_orphaned.store(true, Ordering::Relaxed);
        self.orphan.lock()
    }

    /// Calls `visit` with each span of `class` that has no owner, under the lock: its first page, its record, and whether it is listed as full.
    pub(crate) fn inspect(&self, layout: &Layout, class: usize, mut visit: impl FnMut(PageIndex, &Span, bool)) {
        let lists = self.classes[class].lock();
        lists.freed.iter(layout).chain(lists.available.iter(layout)).for_each(|(page, span)| visit(page, span, false));
        lists.full.iter(layout).for_each(|(page, span)| visit(page, span, true));
    }

    /// Takes the locks of all classes before a fork.
    pub(crate) fn lock_for_fork(&self) {
        self.orphan.acquire_raw();
        self.classes.iter().for_each(Lock::acquire_raw);
    }

    /// Releases the locks that [`CentralLists::lock_for_fork`] took, in parent or child.
    pub(crate) fn unlock_after_fork(&self, forker: Forker) {
        self.classes.iter().for_each(|lists| lists.release_raw(forker));
        self.orphan.release_raw(forker);
    }
}

impl Default for CentralLists {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a decay time has passed since `last_ms`; 0 is never.
pub(crate) fn is_due(last_ms: u32, now_ms: u32, decay_ms: u32) -> bool {
    last_ms == 0 || now_ms.wrapping_sub(last_ms) >= decay_ms
}

/// Whether a span has no block to give.
fn is_full(span: &Span) -> bool {
    span.n_free.get() == 0 && span.fresh.get() == 0
}

/// Gives a span that is in no list, and of which no block is out, to the page heap.
fn free_empty_span<O: Os>(pages: &PageHeap<O>, usage: &Usage, span: OwnedSpan<'_>) {
    usage.add_free_in_spans(-i64::from(span.n_free.get()) * block_bytes(span.class.get() as usize) as i64);
    blocks::clear(&span);
    pages.free_span(span);
}

/// Collects the OS pages of a small span in which no block is out, to give them back to the operating system, and gives back what was collected before if
/// there is no room left. Returns how many blocks are no longer free for it.
#[inline(never)]
pub(crate) fn release_os_pages<'a, O: Os>(
    pages: &PageHeap<O>,
    span: &OwnedSpan<'a>,
    stretches: &mut EmptyStretches<'a>,
) -> u32 {
    let os_page_bytes = pages.os().os_page_bytes();
    if !os_pages::may_release(span, os_page_bytes) {
        return 0;
    }
    let before = blocks::uncarved_bytes(span, os_page_bytes);
    let released = os_pages::release_pages(span, os_page_bytes, stretches, |full| pages.purge_inside(full));
    // If the kernel keeps some of it, that takes what is uncarved in the span off, all of it.
    pages.uncarved.add(blocks::fresh_bytes(span, os_page_bytes) - before);
    released
}

#[cfg(test)]
mod tests;
