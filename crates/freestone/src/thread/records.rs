//! Records of heaps: made once, never unmapped, used for one heap after another.
#![allow(unsafe_code)]
//!
//! ```text
//!  all ─▶ newest ─▶ … ─▶ oldest                every record that was ever made: any thread walks it
//!  unused ─▶ record ─▶ …                       a stack, of those that no heap uses: under the registry's lock
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
    next_in_stack: AtomicPtr<T>,
}

impl<T> RecordLinks<T> {
    /// In no list.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self { next: AtomicPtr::new(ptr::null_mut()), next_in_stack: AtomicPtr::new(ptr::null_mut()) }
    }
}

/// Storage for one heap.
pub(crate) trait Record: Sized {
    /// The record's links.
    fn links(&self) -> &RecordLinks<Self>;
}

/// A stack of records. A record is in one at most. Under the registry's lock.
#[derive(Debug)]
pub(crate) struct RecordStack<T> {
    first: AtomicPtr<T>,
}

impl<T: Record> RecordStack<T> {
    /// Empty.
    pub(crate) const fn new() -> Self {
        Self { first: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Puts a record on top.
    pub(crate) fn push(&self, record: &T) {
        record.links().next_in_stack.store(self.first.load(Ordering::Relaxed), Ordering::Relaxed);
        self.first.store(ptr::from_ref(record).cast_mut(), Ordering::Relaxed);
    }

    /// The record on top.
    pub(crate) fn first(&self) -> Option<&T> {
        // SAFETY: a record in a stack was added, and is never unmapped.
        unsafe { self.first.load(Ordering::Relaxed).as_ref() }
    }

    /// Takes the record on top.
    pub(crate) fn pop(&self) -> Option<&T> {
        let record = self.first()?;
        self.first.store(record.links().next_in_stack.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(record)
    }

    /// Takes the first record for which `is_wanted` returns true.
    pub(crate) fn remove_first(&self, is_wanted: impl Fn(&T) -> bool) -> Option<&T> {
        let mut link = &self.first;
        loop {
            // SAFETY: a record in a stack was added, and is never unmapped.
            let record = unsafe { link.load(Ordering::Relaxed).as_ref() }?;
            let next = &record.links().next_in_stack;
            if is_wanted(record) {
                link.store(next.load(Ordering::Relaxed), Ordering::Relaxed);
                return Some(record);
            }
            link = next;
        }
    }
}

/// All records of one kind. See the module header.
#[derive(Debug)]
pub(crate) struct Records<T> {
    all: AtomicPtr<T>,
    unused: RecordStack<T>,
}

impl<T: Record> Records<T> {
    /// None.
    pub(crate) const fn new() -> Self {
        Self { all: AtomicPtr::new(ptr::null_mut()), unused: RecordStack::new() }
    }

    /// Takes a record that no heap uses. Under the registry's lock.
    pub(crate) fn take_unused(&self) -> Option<&T> {
        self.unused.pop()
    }

    /// Puts back a record that its heap no longer uses. Under the registry's lock.
    pub(crate) fn put_back(&self, record: &T) {
        self.unused.push(record);
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
