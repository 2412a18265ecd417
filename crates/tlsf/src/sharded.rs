//! A heap that threads share without waiting much: one lock a shard.
//!
//! ```text
//! | lock, heap | lock, heap | lock, heap | ...      shard = (address - base) / stride; each has its own part of the region
//! ```
//!
//! Invariant: a block belongs to the shard whose part of the region it lies in, so that any thread can give it back.
//!
//! # Safety
//! The locks make `&mut` access exclusive; everything else is the heap's.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::locked::SharedHeap;
use crate::mapping::GRANULE;
use crate::policy::{Policy, Standard};
use crate::region::LEAST_REGION_BYTES;
use crate::tlsf::Tlsf;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use freestone_base::lock::{Lock, Parking, Spin};

/// `SHARDS` heaps over equal parts of one region, so that threads seldom wait for each other.
///
/// A thread starts at the shard its stack's address picks and goes on to the next when that one is busy or full. So a request may
/// be up to a `SHARDS`-th of the memory, and a block may be freed by any thread.
pub struct Sharded<
    'pool,
    const SHARDS: usize,
    P = Standard,
    W: Parking = Spin,
    const FIRST: usize = 35,
    const SECOND: usize = 32,
> {
    shards: [Lock<Tlsf<'pool, P, FIRST, SECOND, 1>, W>; SHARDS],
    base: usize,
    stride: usize,
}

impl<'pool, const SHARDS: usize, P: Policy, W: Parking, const FIRST: usize, const SECOND: usize>
    Sharded<'pool, SHARDS, P, W, FIRST, SECOND>
{
    /// Splits `region` among the shards. It must start at a multiple of 16.
    ///
    /// # Errors
    /// A region misaligned, or too small for so many shards.
    pub fn new(region: &'pool mut [MaybeUninit<u8>]) -> Result<Self, Error> {
        const { assert!(SHARDS > 0, "a heap without shards has no memory") };
        let bytes = region.len();
        let base = region.as_ptr().addr();
        let stride = freestone_base::align::down(bytes / SHARDS, GRANULE);
        if stride < LEAST_REGION_BYTES {
            return Err(Error::RegionTooSmall { bytes, least: LEAST_REGION_BYTES * SHARDS });
        }
        let shards = core::array::from_fn(|_| Lock::new(Tlsf::with_policy()));
        let mut heap = Self { shards, base, stride };
        for (shard, part) in heap.shards.iter_mut().zip(region.chunks_exact_mut(stride)) {
            shard.get_mut().add_region(part)?;
        }
        Ok(heap)
    }

    /// As [`Tlsf::allocate`], from whichever shard has room.
    ///
    /// # Errors
    /// As [`Tlsf::allocate`]; exhausted when no shard has room.
    pub fn allocate(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let start = shard_of_this_thread() % SHARDS;
        let order = || self.shards.iter().cycle().skip(start).take(SHARDS);
        for shard in order() {
            if let Some(mut heap) = shard.try_lock()
                && let Ok(block) = heap.allocate(bytes, align)
            {
                return Ok(block);
            }
        }
        let mut refused = Error::Exhausted { bytes, align };
        for shard in order() {
            match shard.lock().allocate(bytes, align) {
                Ok(block) => return Ok(block),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// As [`Tlsf::deallocate`].
    ///
    /// # Errors
    /// As [`Tlsf::deallocate`].
    ///
    /// # Safety
    /// As [`Tlsf::deallocate`].
    pub unsafe fn deallocate(&self, block: NonNull<u8>) -> Result<(), Error> {
        // SAFETY: the same obligation.
        unsafe { self.shard_with(block)?.lock().deallocate(block) }
    }

    /// As [`Tlsf::reallocate`]: in the block's own shard if that has room, else in another.
    ///
    /// # Errors
    /// As [`Tlsf::reallocate`].
    ///
    /// # Safety
    /// As [`Tlsf::reallocate`].
    pub unsafe fn reallocate(&self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let shard = self.shard_with(block)?;
        let kept = {
            let mut heap = shard.lock();
            // SAFETY: the same obligation.
            match unsafe { heap.reallocate(block, bytes, align) } {
                // SAFETY: the same obligation; a refusal for want of room means that the block was found in use.
                Err(Error::Exhausted { .. }) => unsafe { heap.usable_size(block)? },
                done => return done,
            }
        };
        let new = self.allocate(bytes, align)?;
        // SAFETY: two blocks in use; the old one is the caller's to give up.
        unsafe {
            new.copy_from_nonoverlapping(block, kept.min(bytes));
            self.deallocate(block)?;
        }
        Ok(new)
    }

    /// Runs `look` over each shard's heap in turn, for statistics and checks.
    pub fn each_shard(&self, mut look: impl FnMut(&Tlsf<'pool, P, FIRST, SECOND, 1>)) {
        for shard in &self.shards {
            look(&shard.lock());
        }
    }

    fn shard_with(&self, block: NonNull<u8>) -> Result<&Lock<Tlsf<'pool, P, FIRST, SECOND, 1>, W>, Error> {
        let address = block.addr().get();
        let index = address.wrapping_sub(self.base) / self.stride;
        self.shards.get(index).ok_or(Error::Foreign { address })
    }
}

/// A number that differs between threads, mostly: which 64 KiB of address space the stack pointer is in.
fn shard_of_this_thread() -> usize {
    let on_the_stack = 0_u8;
    let address = (&raw const on_the_stack).addr();
    (address >> 16) ^ (address >> 23)
}

impl<const SHARDS: usize, P: Policy, W: Parking, const FIRST: usize, const SECOND: usize> SharedHeap
    for Sharded<'_, SHARDS, P, W, FIRST, SECOND>
{
    fn allocate(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        self.allocate(bytes, align)
    }
    unsafe fn deallocate(&self, block: NonNull<u8>) -> Result<(), Error> {
        // SAFETY: the same obligation.
        unsafe { self.deallocate(block) }
    }
    unsafe fn reallocate(&self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        // SAFETY: the same obligation.
        unsafe { self.reallocate(block, bytes, align) }
    }
}
