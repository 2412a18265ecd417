//! A thread heap's record, as other threads see it.
#![allow(unsafe_code)]
//!
//! # Safety
//! The memory is a loom cell: loom checks whether each access is ordered.

use freestone_base::inbox::Inbox;
use freestone_base::sync::AtomicPtr;
use loom::cell::UnsafeCell;
use std::ptr;

/// The record: memory that its thread initialises, its inbox, and the link of the list of all records.
pub(crate) struct Record {
    memory: UnsafeCell<u32>,
    pub(crate) inbox: Inbox,
    pub(crate) next: AtomicPtr<Record>,
}

impl Record {
    pub(crate) fn new() -> Self {
        Self { memory: UnsafeCell::new(0), inbox: Inbox::new(), next: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Writes to the memory, which is zero.
    pub(crate) fn initialise(&self) {
        // SAFETY: the record is not published yet.
        self.memory.with_mut(|memory| unsafe { *memory = 1 });
    }

    /// Reads the memory.
    pub(crate) fn look(&self) {
        // SAFETY: the record was initialised before it was published.
        self.memory.with(|memory| unsafe { assert_eq!(*memory, 1) });
    }

    pub(crate) fn pointer(&self) -> *mut Self {
        ptr::from_ref(self).cast_mut()
    }
}
