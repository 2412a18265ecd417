//! An address range of a test's own: the calls of [`Os`], and reads and writes, as safe functions of offsets.
#![allow(unsafe_code)]
//!
//! # Safety
//! Only the test uses the range, and every offset is checked against its length. What a test reads or writes it has committed before; over the
//! fake kernel, all of the range is memory.

use crate::{Errno, GuardBy, NotMoved, Os};
use core::ops::Range;

/// See the module header.
pub(crate) struct TestRange<'o, O: Os> {
    os: &'o O,
    start: *mut u8,
    bytes: usize,
}

impl<'o, O: Os> TestRange<'o, O> {
    /// A range of `bytes`, of which the first `committed` are committed in one piece.
    pub(crate) fn new(os: &'o O, bytes: usize, committed: usize) -> Self {
        let at = |attempt| Self { os, start: os.propose_range(bytes, attempt).expect("there is another place"), bytes };
        let mut ranges = (0..).map(at);
        let is_free = |range: &Self| committed == 0 || range.commit(0..committed, false).is_ok();
        ranges.find(is_free).expect("there is another place")
    }

    /// The place of an offset.
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.bytes, "beyond the range");
        self.start.wrapping_add(offset)
    }

    fn place(&self, part: &Range<usize>) -> *mut u8 {
        assert!(part.start <= part.end && part.end <= self.bytes, "beyond the range");
        self.at(part.start)
    }

    pub(crate) fn commit(&self, part: Range<usize>, lazily: bool) -> Result<(), Errno> {
        // SAFETY: the part lies inside a range that was proposed.
        unsafe { self.os.commit(self.place(&part), part.len(), lazily) }
    }

    pub(crate) fn release(&self, part: Range<usize>) -> Result<(), Errno> {
        // SAFETY: the part is the test's, which uses it no more.
        unsafe { self.os.release(self.place(&part), part.len()) }
    }

    pub(crate) fn purge(&self, part: Range<usize>) -> Result<(), Errno> {
        // SAFETY: the part is the test's, which does not need the contents.
        unsafe { self.os.purge(self.place(&part), part.len()) }
    }

    pub(crate) fn relocate(&self, from: Range<usize>, to: usize) -> Result<(), NotMoved> {
        let target = self.place(&(to..to + from.len()));
        // SAFETY: both parts are the test's, which does not need what is at the target.
        unsafe { self.os.relocate(self.place(&from), from.len(), target) }
    }

    pub(crate) fn guard(&self, part: Range<usize>, by: GuardBy) -> Result<(), Errno> {
        // SAFETY: the part is the test's, which does not use it while it is guarded.
        unsafe { self.os.guard(self.place(&part), part.len(), by) }
    }

    pub(crate) fn unguard(&self, part: Range<usize>, by: GuardBy) -> Result<(), Errno> {
        // SAFETY: the part is the test's, and was guarded by it.
        unsafe { self.os.unguard(self.place(&part), part.len(), by) }
    }

    pub(crate) fn advise_huge(&self, part: Range<usize>, wanted: bool) -> Result<(), Errno> {
        self.os.advise_huge(self.place(&part), part.len(), wanted)
    }

    pub(crate) fn fill(&self, part: Range<usize>, byte: u8) {
        // SAFETY: the part is the test's, and committed.
        unsafe { self.place(&part).write_bytes(byte, part.len()) };
    }

    pub(crate) fn write(&self, offset: usize, byte: u8) {
        self.fill(offset..offset + 1, byte);
    }

    pub(crate) fn read(&self, offset: usize) -> u8 {
        // SAFETY: the byte is the test's, and committed.
        unsafe { self.place(&(offset..offset + 1)).read() }
    }

    pub(crate) fn is_full_of(&self, part: Range<usize>, byte: u8) -> bool {
        // SAFETY: the part is the test's, and committed; zero or what was written is in it.
        unsafe { core::slice::from_raw_parts(self.place(&part), part.len()) }.iter().all(|&it| it == byte)
    }
}
