//! The allocator under test, as the workloads see it.
//!
//! Layer: the lowest of the workloads. [`CHeap`] calls the C symbols `malloc`, `calloc`, `realloc` and `free`, so that whatever
//! the loader put in front of the C library answers, as it would for a user's program. [`Hollow`] answers without an
//! allocator: the same loop over it is what the workload itself costs.
//!
//! Invariants: a [`Block`] is released at most once (releasing consumes it); every access stays inside its size; a stamp that
//! reads back wrong ends the process with [`CORRUPT_EXIT`], so that a broken allocator fails instead of winning.
//!
//! # Safety
//! Pointers come from the C allocator and are only touched within the size asked for.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::hint::black_box;
use std::ptr::NonNull;

/// Exit status of a workload whose blocks did not keep their contents.
pub(crate) const CORRUPT_EXIT: i32 = 3;

/// Exit status of a workload that was refused memory.
pub(crate) const EXHAUSTED_EXIT: i32 = 4;

/// Memory from a [`Heap`]: an address and the size that was asked for.
pub(crate) struct Block {
    address: NonNull<u8>,
    size: usize,
}

// SAFETY: a block is memory owned by whoever holds the value; nothing else refers to it.
unsafe impl Send for Block {}

impl Block {
    /// A block at `address` of another heap than the C library's.
    ///
    /// # Safety
    /// The `size` bytes there are the caller's to give away until the block is released, and nobody else's.
    pub(crate) unsafe fn adopt(address: NonNull<u8>, size: usize) -> Self {
        Self { address, size }
    }

    /// Where it starts.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.address
    }

    /// The size asked for.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The address, to see whether a resize moved the block and which OS pages it covers.
    pub(crate) fn address(&self) -> usize {
        self.address.as_ptr() as usize
    }

    /// Where the second stamp goes: the last word, or the only one where two do not fit side by side.
    #[inline]
    fn last_word(&self) -> usize {
        if self.size >= 16 { self.size - 8 } else { 0 }
    }

    /// Writes `tag` at both ends.
    #[inline]
    pub(crate) fn stamp(&self, tag: u64) {
        if self.size >= 8 {
            // SAFETY: both words lie inside the block, which is at least eight bytes; unaligned writes are allowed.
            unsafe {
                self.address.as_ptr().cast::<u64>().write_unaligned(tag);
                self.address.as_ptr().add(self.last_word()).cast::<u64>().write_unaligned(tag);
            }
        } else if self.size > 0 {
            // SAFETY: the block has at least one byte.
            unsafe { self.address.as_ptr().write(tag as u8) }
        }
    }

    /// Reads what [`Block::stamp`] wrote: the words at the two ends.
    #[inline]
    pub(crate) fn ends(&self) -> (u64, u64) {
        if self.size >= 8 {
            // SAFETY: as in `stamp`; the bytes were written by `stamp` or come zeroed or arbitrary from the allocator.
            unsafe {
                (
                    self.address.as_ptr().cast::<u64>().read_unaligned(),
                    self.address.as_ptr().add(self.last_word()).cast::<u64>().read_unaligned(),
                )
            }
        } else if self.size > 0 {
            // SAFETY: the block has at least one byte.
            let byte = u64::from(unsafe { self.address.as_ptr().read() });
            (byte, byte)
        } else {
            (0, 0)
        }
    }

    /// Fills the bytes from `from` on with `byte`.
    pub(crate) fn fill_from(&self, from: usize, byte: u8) {
        if from < self.size {
            // SAFETY: the range is inside the block.
            unsafe { self.address.as_ptr().add(from).write_bytes(byte, self.size - from) }
        }
    }

    /// Writes `byte` once in every `step` bytes, which is enough to make the kernel provide each OS page.
    pub(crate) fn touch(&self, step: usize, byte: u8) {
        for offset in (0..self.size).step_by(step) {
            // SAFETY: the offset is inside the block.
            unsafe { self.address.as_ptr().add(offset).write(byte) }
        }
    }

    /// The byte at `offset`, which must be inside the block.
    pub(crate) fn byte(&self, offset: usize) -> u8 {
        assert!(offset < self.size, "offset {offset} outside a block of {} bytes", self.size);
        // SAFETY: checked just above.
        unsafe { self.address.as_ptr().add(offset).read() }
    }

    /// Adds one to the first byte, `times` times, each a load and a store of its own.
    pub(crate) fn increment_first(&self, times: u64) {
        assert!(self.size > 0, "a block without bytes cannot be written");
        for _ in 0..times {
            // SAFETY: the block has at least one byte and belongs to this thread. Volatile, or the loop becomes one addition.
            unsafe {
                let byte = self.address.as_ptr();
                byte.write_volatile(byte.read_volatile().wrapping_add(1));
            }
        }
    }

    /// Sum of all bytes.
    pub(crate) fn sum(&self) -> u64 {
        // SAFETY: every byte was written by the workload, or zeroed by calloc.
        let bytes = unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.size) };
        bytes.iter().map(|&byte| u64::from(byte)).sum()
    }
}

/// Where blocks come from.
pub(crate) trait Heap {
    /// Whether contents can be checked: blocks of the hollow heap overlap.
    const KEEPS_CONTENTS: bool;

    /// A block of `size` bytes; ends the process when there is none.
    fn allocate(&self, size: usize) -> Block;

    /// Gives a block back.
    fn release(&self, block: Block);

    /// Reads a stamp back, ends the process when it is not `tag`, and returns something to add to the checksum.
    #[inline]
    fn verify(&self, block: &Block, tag: u64) -> u64 {
        let (first, last) = block.ends();
        let expected = if block.size >= 8 { tag } else { tag & 0xFF };
        if Self::KEEPS_CONTENTS && block.size > 0 && (first != expected || last != expected) {
            corrupt(block, expected, first, last);
        }
        first
    }
}

/// The C symbols.
#[derive(Clone, Copy)]
pub(crate) struct CHeap;

impl Heap for CHeap {
    const KEEPS_CONTENTS: bool = true;

    #[inline]
    fn allocate(&self, size: usize) -> Block {
        // SAFETY: malloc takes every size. The result goes through black_box, or the compiler may remove the pair.
        into_block(unsafe { black_box(libc::malloc(black_box(size))) }, size)
    }

    #[inline]
    fn release(&self, block: Block) {
        // SAFETY: the block came from this allocator and is consumed here.
        unsafe { libc::free(block.address.as_ptr().cast()) }
    }
}

impl CHeap {
    /// A block of zeroes.
    pub(crate) fn allocate_zeroed(self, size: usize) -> Block {
        // SAFETY: calloc takes every size.
        into_block(unsafe { black_box(libc::calloc(1, black_box(size))) }, size)
    }

    /// The block with another size, moved if need be.
    pub(crate) fn resize(self, block: Block, size: usize) -> Block {
        // SAFETY: the block came from this allocator and is consumed here.
        into_block(unsafe { black_box(libc::realloc(block.address.as_ptr().cast(), size)) }, size)
    }
}

/// No allocator: every block is a piece of one ring of memory that belongs to the handle.
pub(crate) struct Hollow {
    ring: NonNull<u8>,
    len: usize,
    next: Cell<usize>,
}

// SAFETY: each handle owns its ring and is used by one thread at a time; blocks sent to others outlive every user, because the ring
// is never freed.
unsafe impl Send for Hollow {}

impl Hollow {
    /// A ring that holds blocks of up to `largest` bytes; small enough beyond that to stay in the processor's cache.
    pub(crate) fn new(largest: usize) -> Self {
        let len = largest.next_power_of_two().max(64 * 1024);
        let ring = Box::leak(vec![0_u8; len].into_boxed_slice());
        Self { ring: NonNull::from(ring).cast(), len, next: Cell::new(0) }
    }
}

impl Clone for Hollow {
    fn clone(&self) -> Self {
        Self::new(self.len)
    }
}

impl Heap for Hollow {
    const KEEPS_CONTENTS: bool = false;

    #[inline]
    fn allocate(&self, size: usize) -> Block {
        let start = if self.next.get() + size > self.len { 0 } else { self.next.get() };
        self.next.set(start + size.next_multiple_of(16));
        // SAFETY: `start + size` is within the ring, for no block is larger than it.
        Block { address: black_box(unsafe { self.ring.add(start) }), size: black_box(size) }
    }

    #[inline]
    fn release(&self, block: Block) {
        black_box(block.address);
    }
}

#[inline]
fn into_block(address: *mut libc::c_void, size: usize) -> Block {
    match NonNull::new(address.cast()) {
        Some(address) => Block { address, size },
        None => exhausted(size),
    }
}

#[cold]
fn exhausted(size: usize) -> ! {
    eprintln!(
        "workload: the allocator refused {size} bytes; give the machine or the container more memory, or lower a parameter"
    );
    std::process::exit(EXHAUSTED_EXIT)
}

#[cold]
fn corrupt(block: &Block, expected: u64, first: u64, last: u64) -> ! {
    eprintln!(
        "workload: a block of {} bytes at {:#x} lost its contents: wrote {expected:#x}, found {first:#x} at its start and {last:#x} \
         at its end. The allocator handed out memory that was in use",
        block.size,
        block.address()
    );
    std::process::exit(CORRUPT_EXIT)
}

/// Ends the process because memory did not hold what it must: for checks a stamp does not cover.
#[cold]
pub(crate) fn broken(what: &str) -> ! {
    eprintln!("workload: {what}. The allocator broke its contract");
    std::process::exit(CORRUPT_EXIT)
}
