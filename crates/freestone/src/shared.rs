//! What all heaps share: the page heap, the central lists, and the sums of what is used.
//!
//! ```text
//!  thread heap ─┐
//!  thread heap ─┼─▶ Shared ─┬─ pages     the page heap, which has the settings and the operating system
//!  explicit  ───┘           ├─ central   abandoned spans, one list per size class
//!                           ├─ usage     heaps alive, live bytes, bytes free inside spans
//!                           └─ secret    what canaries of watched heaps are made of
//! ```
//!
//! The process's allocator has one of these (`api::process`); each test makes as many as it likes. The parts do not know each other's owner: a
//! function of the central lists that needs the page heap or the sums is given them.
//!
//! Layer: above `central`, below `thread`.
#![allow(unsafe_code)]
//!
//! # Safety
//! Records of spans are never unmapped; a span's fields are for its owner.

use crate::central::CentralLists;
use crate::config::Settings;
use crate::page::PageHeap;
use crate::span::Span;
use crate::span::trailer::Secret;
use crate::usage::Usage;
use freestone_os::Os;

/// See the module header.
pub(crate) struct Shared<O: Os> {
    /// The page heap.
    pub pages: PageHeap<O>,
    /// Spans without an owner.
    pub central: CentralLists,
    /// What is used, summed over all heaps.
    pub usage: Usage,
    /// What canaries are made of, once there is a watched heap.
    pub secret: Secret,
}

impl<O: Os> Shared<O> {
    /// Default settings; nothing has been asked of the operating system.
    #[must_use]
    pub(crate) const fn new(os: O) -> Self {
        Self { pages: PageHeap::new(os), central: CentralLists::new(), usage: Usage::new(), secret: Secret::new() }
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

    /// The record of the span at `page`.
    ///
    /// # Safety
    /// - The page is below the page heap's high-water mark, so it has a record.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn span(&self, page: u32) -> &Span {
        // SAFETY: the page has a record (this function's contract), and records are never unmapped.
        unsafe { &*self.pages.layout().record(page) }
    }

    /// Takes the locks of the central lists and of the page heap, in order of rank, before a fork.
    pub(crate) fn lock_for_fork(&self) {
        self.central.lock_for_fork();
        self.pages.lock_for_fork();
    }

    /// Releases the locks that [`Shared::lock_for_fork`] took, in parent or child.
    ///
    /// # Safety
    /// - This thread took them, or is the child's copy of the thread that did.
    pub(crate) unsafe fn unlock_after_fork(&self) {
        // SAFETY: this thread, or the one it is a copy of, took both with `lock_for_fork` (this function's contract).
        unsafe {
            self.pages.unlock_after_fork();
            self.central.unlock_after_fork();
        }
    }
}
