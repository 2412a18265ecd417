//! Records of heaps: made once, never unmapped, used for one heap after another.
#![allow(unsafe_code)]
//!
//! ```text
//!  all ─▶ newest ─▶ … ─▶ oldest                every record that was ever made: any thread walks it
//!  unused ─▶ record ─▶ …                       those that no heap uses: under the registry's lock
//! ```
//!
//! # Safety
//! A record that was added stays where it is for good, so a reference to it stays valid as long as the allocator.

use core::ptr;
use freestone_base::sync::{AtomicPtr, Ordering};

/// A record's links in the lists.
#[derive(Debug)]
pub(crate) struct RecordLinks<T> {
    next: AtomicPtr<T>,
    next_unused: AtomicPtr<T>,
}

impl<T> RecordLinks<T> {
    /// In no list.
    pub(crate) const fn new() -> Self {
        Self { next: AtomicPtr::new(ptr::null_mut()), next_unused: AtomicPtr::new(ptr::null_mut()) }
    }
}

/// Storage for one heap.
pub(crate) trait Record: Sized {
    /// The record's links.
    fn links(&self) -> &RecordLinks<Self>;
}

/// All records of one kind. See the module header.
#[derive(Debug)]
pub(crate) struct Records<T> {
    all: AtomicPtr<T>,
    unused: AtomicPtr<T>,
}

impl<T: Record> Records<T> {
    /// None.
    pub(crate) const fn new() -> Self {
        Self { all: AtomicPtr::new(ptr::null_mut()), unused: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Takes a record that no heap uses. Under the registry's lock.
    pub(crate) fn take_unused(&self) -> Option<&T> {
        // SAFETY: a record in the list was added, and is never unmapped.
        let record = unsafe { self.unused.load(Ordering::Relaxed).as_ref() }?;
        self.unused.store(record.links().next_unused.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(record)
    }

    /// Puts back a record that its heap no longer uses. Under the registry's lock.
    pub(crate) fn put_back(&self, record: &T) {
        record.links().next_unused.store(self.unused.load(Ordering::Relaxed), Ordering::Relaxed);
        self.unused.store(ptr::from_ref(record).cast_mut(), Ordering::Relaxed);
    }

    /// Adds a new record; others see it once `prepare` is done. Under the registry's lock.
    ///
    /// # Safety
    /// - `storage` has the size and alignment of a record, is used by no other code, and is never unmapped. It is zeroed, and zero is a valid record.
    pub(crate) unsafe fn add(&self, storage: *mut T, prepare: impl FnOnce(&T)) -> &T {
        // SAFETY: the storage holds a valid record and stays for good (this function's contract).
        let record = unsafe { &*storage };
        prepare(record);
        record.links().next.store(self.all.load(Ordering::Relaxed), Ordering::Relaxed);
        self.all.store(storage, Ordering::Release);
        record
    }

    /// Every record, in use or not, newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let mut next = self.all.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            // SAFETY: a record in the list was added, and is never unmapped.
            let record = unsafe { next.as_ref() }?;
            next = record.links().next.load(Ordering::Relaxed);
            Some(record)
        })
    }
}

#[cfg(test)]
mod tests;
