//! What all heaps share: the page heap, the central lists, and the sums of what is used.
//!
//! ```text
//!  thread heap ─┐
//!  thread heap ─┼─▶ Shared ─┬─ pages     the page heap, which has the settings and the operating system
//!  explicit  ───┘           ├─ central   abandoned spans, one list per size class
//!                           ├─ usage     heaps alive, live bytes, bytes free inside spans
//!                           ├─ secret    what canaries of watched heaps are made of
//!                           ├─ guarded   blocks between closed pages
//!                           ├─ empty     blocks of no bytes, at the level `full`
//!                           ├─ random    what is sampled, and where a sample is placed
//!                           └─ profile   stacks of sampled allocations
//! ```
//!
//! The process's allocator has one of these (`api::process`); a test may make several. The parts do not reach each other through it: a
//! function of the central lists that needs the page heap or the sums gets them as parameters.
//!
//! Layer: above `central`, below `thread`.

use crate::central::CentralLists;
use crate::config::Settings;
use crate::guarded::empty_blocks::EmptyBlocks;
use crate::guarded::pool::GuardedPool;
use crate::heap_profile::recorder::HeapProfile;
use crate::page::PageHeap;
use crate::random::RandomNumbers;
use crate::span::secret::Secret;
use crate::usage::Usage;
use freestone_base::lock::Forker;
use freestone_os::Os;

/// See the module header.
pub(crate) struct Shared<O: Os> {
    /// The page heap.
    pub pages: PageHeap<O>,
    /// Spans without an owner.
    pub central: CentralLists,
    /// The sums of memory in use, over all heaps.
    pub usage: Usage,
    /// What canaries are made of, once there is a watched heap.
    pub secret: Secret,
    /// Guarded blocks.
    pub guarded: GuardedPool,
    /// Blocks of no bytes that cannot be accessed.
    pub empty: EmptyBlocks,
    /// Random numbers for sampling.
    pub random: RandomNumbers,
    /// Stacks of sampled allocations.
    pub profile: HeapProfile,
}

impl<O: Os> Shared<O> {
    /// Default settings. Makes no system call.
    #[must_use]
    pub(crate) const fn new(os: O) -> Self {
        Self {
            pages: PageHeap::new(os),
            central: CentralLists::new(),
            usage: Usage::new(),
            secret: Secret::new(),
            guarded: GuardedPool::new(),
            empty: EmptyBlocks::new(),
            random: RandomNumbers::new(),
            profile: HeapProfile::new(),
        }
    }

    /// Bytes free inside spans that have to go back, because more is free there than the dirty bound allows, or than half of that if it `was_more` than all; 0 or
    /// less if there are none. What may stay whatever the bound stays.
    pub(crate) fn excess_in_spans(&self, was_more: bool) -> i64 {
        let is_over = self.usage.exceeds_bound_in_spans(self.settings(), was_more);
        if is_over { self.pages.beyond_what_was_in_vain(&self.usage) } else { 0 }
    }

    /// Gives back OS pages inside spans without an owner, as far as they have to go back.
    pub(crate) fn release_in_spans(&self) {
        let excess_bytes = self.excess_in_spans(false);
        if excess_bytes > 0 {
            self.central.release_os_pages(&self.pages, &self.usage, Some(excess_bytes));
        }
    }

    /// The options.
    #[inline]
    #[must_use]
    pub(crate) fn settings(&self) -> &Settings {
        &self.pages.settings
    }

    /// The operating system underneath.
    #[inline]
    #[must_use]
    pub(crate) fn os(&self) -> &O {
        self.pages.os()
    }

    /// Takes the locks of the central lists, of the guarded and of the empty blocks, and of the page heap, in order of rank, before a fork.
    pub(crate) fn lock_for_fork(&self) {
        self.central.lock_for_fork();
        self.guarded.lock_for_fork();
        self.empty.lock_for_fork();
        self.pages.lock_for_fork();
    }

    /// Releases the locks that [`Shared::lock_for_fork`] took, in parent or child.
    pub(crate) fn unlock_after_fork(&self, forker: Forker) {
        self.pages.unlock_after_fork(forker);
        self.empty.unlock_after_fork(forker);
        self.guarded.unlock_after_fork(forker);
        self.central.unlock_after_fork(forker);
    }
}
