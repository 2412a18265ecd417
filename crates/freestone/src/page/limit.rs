//! Limits: how much memory the process may have.
#![allow(unsafe_code)]
//!
//! ```text
//!  0 ────────────── in use ─────── soft limit ─────────── hard limit
//!                          │ memory is asked for freely    │
//!                          └ what is dirty goes back first; whoever asked is to empty caches and tell the program (`is_pressed`)
//!                                                          └ no more
//! ```
//!
//! What counts is small spans, large blocks, thread heaps and free runs that have memory, in whole pages of 64 KiB. Runs that the kernel is
//! taking back have memory until it is done: who would be within the limit without them waits for that. The soft limit is the option's, or 15/16 of what the
//! control group allows; that is looked up once, when the heap has grown to `LOOK_UP_PAGES`: small processes do not pay for it.

use crate::page::PageHeap;
use crate::page::heap::RANK;
use crate::page::state::State;
use freestone_base::lock::Guard;
use freestone_base::sync::{AtomicBool, Ordering};
use freestone_base::units::PAGE_BYTES_LOG2;
use freestone_os::{Futex, Os};

/// The control group is asked when the heap is this large: 32 MiB.
const LOOK_UP_PAGES: u32 = 512;

/// Once the soft limit was passed, the next call for relief comes when this part of it more is in use.
const AGAIN_SHARE: u64 = 64;

/// Part of the control group's limit that is ours: the program has stacks, code and files too.
const GROUP_SHARE: (u64, u64) = (15, 16);

/// Whether somebody ought to make room.
#[derive(Debug)]
pub struct Limits {
    group_asked: AtomicBool,
    pressed: AtomicBool,
}

impl Limits {
    /// Nothing known.
    #[must_use]
    pub const fn new() -> Self {
        Self { group_asked: AtomicBool::new(false), pressed: AtomicBool::new(false) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: Os> PageHeap<O> {
    /// Sees to the limits before `n_pages` more get memory: gives back what is dirty, as far as that is needed. `None` if that would be
    /// beyond the hard limit.
    pub(super) fn keep_limits<'a>(
        &'a self,
        state: Guard<'a, State, Futex, RANK>,
        n_pages: u32,
    ) -> Option<Guard<'a, State, Futex, RANK>> {
        let mut state = state;
        if state.frontier >= LOOK_UP_PAGES && !self.limits.group_asked.swap(true, Ordering::Relaxed) {
            // Files are read: nobody is to wait for that.
            drop(state);
            self.ask_group();
            state = self.state.lock();
        }
        let pages = |bytes: Option<usize>| bytes.map(|bytes| (bytes >> PAGE_BYTES_LOG2) as u64);
        let (soft, hard) = (pages(self.settings.limit_bytes()), pages(self.settings.limit_hard_bytes()));
        if soft.is_none() && hard.is_none() {
            return Some(state);
        }
        let (soft, hard) = (soft.unwrap_or(u64::MAX), hard.unwrap_or(u64::MAX));
        let mut state = self.make_way(state, u64::from(n_pages), (soft.min(hard), hard));
        let wanted = state.in_use_pages() + u64::from(n_pages);
        if wanted <= soft {
            state.press_at_pages = soft;
        } else if wanted > state.press_at_pages.max(soft) {
            state.press_at_pages = wanted + soft / AGAIN_SHARE;
            self.limits.pressed.store(true, Ordering::Relaxed);
        }
        if wanted + state.stats.purging_pages > hard { None } else { Some(state) }
    }

    /// Gives dirty memory back as long as `n_pages` more pass the lower of two limits, and waits for memory that others are giving back
    /// where that alone stands in the way.
    fn make_way<'a>(
        &'a self,
        state: Guard<'a, State, Futex, RANK>,
        n_pages: u64,
        (least, most): (u64, u64),
    ) -> Guard<'a, State, Futex, RANK> {
        let (mut state, now_ms) = (state, self.now_ms());
        while state.in_use_pages() + state.free_with_memory() + n_pages > least {
            // What is on shelves counts as in use until then.
            state.empty_shelves(self.layout(), now_ms);
            if let Some((page, all)) = state.oldest_dirty(self.layout()) {
                state = self.purge_run(state, page, all, now_ms);
                continue;
            }
            let wanted = state.in_use_pages() + n_pages;
            let limit = if wanted <= least { least } else { most };
            if wanted > limit || wanted + state.stats.purging_pages <= limit {
                break;
            }
            state = match self.await_purge(state) {
                Ok(state) => state,
                Err(state) => return state,
            };
        }
        state
    }

    /// Makes a part of the control group's limit the soft limit, unless there is one.
    fn ask_group(&self) {
        if self.settings.sandbox() {
            return;
        }
        if let Some(bytes) = self.os.memory_limit_bytes().and_then(|bytes| usize::try_from(bytes).ok()) {
            self.settings.set_default_limit((bytes as u64 / GROUP_SHARE.1 * GROUP_SHARE.0) as usize);
        }
    }

    /// Whether the soft limit was passed since [`PageHeap::relieved`].
    #[must_use]
    pub fn is_pressed(&self) -> bool {
        self.limits.pressed.load(Ordering::Relaxed)
    }

    /// Notes that somebody is making room.
    pub fn relieved(&self) {
        self.limits.pressed.store(false, Ordering::Relaxed);
    }

    /// Bytes that count against the limits now.
    #[must_use]
    pub fn limited_bytes(&self) -> usize {
        let state = self.state.lock();
        ((state.in_use_pages() + state.free_with_memory()) << PAGE_BYTES_LOG2) as usize
    }
}
