//! Several heaps side by side, each behind a lock, so that threads rarely wait for one another.
//!
//! ```text
//! | lock, heap | lock, heap | lock, heap | ...      shard = (address - base) / stride; each has a part of the region
//! ```
//!
//! Invariant: a block belongs to the shard whose part of the region it lies in, so any thread can free it.
//!
//! # Safety
//! The methods have the contract of the heap's own: the block is one of this heap's, and nothing uses it any more. The locks make
//! access exclusive.
#![allow(unsafe_code)]

use crate::block_size::GRANULE;
use crate::error::Error;
use crate::locked::SharedHeap;
use crate::policy::{Policy, Standard};
use crate::region::LEAST_REGION_BYTES;
use crate::tlsf::Tlsf;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use freestone_base::lock::{Lock, Parking, Spin};

/// `SHARDS` heaps over equal parts of one region, so that threads rarely wait for one another.
///
/// A thread starts at the shard that the address of its stack picks, and goes on to the next one while a shard is busy or full. A request
/// can therefore be no larger than a part of `1 / SHARDS` of the memory. Any thread may free any block.
///
/// ```
/// use core::mem::MaybeUninit;
/// use freestone_tlsf::Sharded;
///
/// #[repr(align(16))]
/// struct Memory([MaybeUninit<u8>; 1 << 16]);
/// let mut memory = Memory([MaybeUninit::uninit(); 1 << 16]);
///
/// let heap = Sharded::<4>::new(&mut memory.0)?;
/// let block = heap.allocate(1000, 16)?;
/// // SAFETY: nothing uses the block any more.
/// unsafe { heap.deallocate(block)? };
/// # Ok::<(), freestone_tlsf::Error>(())
/// ```
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
    /// Divides `region`, which must start at a multiple of 16, among the shards.
    ///
    /// ```
    /// # use core::mem::MaybeUninit;
    /// # #[repr(align(16))] struct Memory([MaybeUninit<u8>; 1 << 16]);
    /// # let mut memory = Memory([MaybeUninit::uninit(); 1 << 16]);
    /// use freestone_tlsf::{Error, Sharded};
    ///
    /// let heap = Sharded::<4>::new(&mut memory.0)?;
    /// assert!(heap.allocate(10_000, 16).is_ok());
    /// assert!(matches!(heap.allocate(20_000, 16), Err(Error::Exhausted { .. })), "a shard has 16 KiB");
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::RegionMisaligned`]; [`Error::RegionTooSmall`] if the region is too small for so many shards;
    /// [`Error::RegionTooLarge`] if a part is too large for one; [`Error::RegionTooLow`].
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

    /// Allocates as [`Tlsf::allocate`] does, from a shard that has room.
    ///
    /// ```
    /// # use core::mem::MaybeUninit;
    /// # #[repr(align(16))] struct Memory([MaybeUninit<u8>; 1 << 16]);
    /// # let mut memory = Memory([MaybeUninit::uninit(); 1 << 16]);
    /// # let heap = freestone_tlsf::Sharded::<4>::new(&mut memory.0)?;
    /// let blocks: Vec<_> = (0..6).map(|_| heap.allocate(6000, 16)).collect::<Result<_, _>>()?;
    /// let mut in_use = Vec::new();
    /// heap.each_shard(|shard| in_use.push(shard.stats().used_blocks));
    /// assert_eq!(in_use.iter().sum::<usize>(), blocks.len());
    /// assert!(in_use.iter().all(|&n| n <= 2), "a shard of 16 KiB has room for two");
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tlsf::allocate`]; [`Error::Exhausted`] if no shard has room.
    pub fn allocate(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let start = shard_of_this_thread() % SHARDS;
        let order = || self.shards.iter().cycle().skip(start).take(SHARDS);
        for shard in order() {
            if let Some(mut heap) = shard.try_lock() {
                if let Ok(block) = heap.allocate(bytes, align) {
                    return Ok(block);
                }
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

    /// Frees as [`Tlsf::deallocate`] does, a block that any thread allocated.
    ///
    /// ```
    /// # use core::mem::MaybeUninit;
    /// # #[repr(align(16))] struct Memory([MaybeUninit<u8>; 1 << 16]);
    /// # let mut memory = Memory([MaybeUninit::uninit(); 1 << 16]);
    /// # let heap = freestone_tlsf::Sharded::<4>::new(&mut memory.0)?;
    /// use freestone_tlsf::Error;
    ///
    /// let block = heap.allocate(100, 16)?;
    /// // SAFETY: the block is not used afterwards.
    /// unsafe {
    ///     heap.deallocate(block)?;
    ///     assert!(matches!(heap.deallocate(block), Err(Error::DoubleFree { .. })));
    /// }
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tlsf::deallocate`].
    ///
    /// # Safety
    /// As [`Tlsf::deallocate`].
    pub unsafe fn deallocate(&self, block: NonNull<u8>) -> Result<(), Error> {
        let shard = self.shard_with(block)?;
        // SAFETY: nothing uses the block any more: this function's contract.
        unsafe { shard.lock().deallocate(block) }
    }

    /// Changes the size of a block as [`Tlsf::reallocate`] does, in the block's own shard if that has room, else in another.
    ///
    /// ```
    /// # use core::mem::MaybeUninit;
    /// # #[repr(align(16))] struct Memory([MaybeUninit<u8>; 1 << 16]);
    /// # let mut memory = Memory([MaybeUninit::uninit(); 1 << 16]);
    /// # let heap = freestone_tlsf::Sharded::<4>::new(&mut memory.0)?;
    /// let block = heap.allocate(100, 16)?;
    /// // SAFETY: the old pointer is not used again; the block has 100 bytes or more.
    /// unsafe {
    ///     block.write(7);
    ///     let block = heap.reallocate(block, 10_000, 16)?;
    ///     assert_eq!(block.read(), 7);
    /// }
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
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
            // SAFETY: after success nothing uses the old pointer: this function's contract.
            match unsafe { heap.reallocate(block, bytes, align) } {
                // SAFETY: the heap found the block in use before it looked for room.
                Err(Error::Exhausted { .. }) => unsafe { heap.usable_size(block)? },
                done => return done,
            }
        };
        let new = self.allocate(bytes, align)?;
        // SAFETY: the blocks are in use and distinct; the old one has `kept` bytes, the new one `bytes`.
        unsafe { new.copy_from_nonoverlapping(block, kept.min(bytes)) };
        // SAFETY: the contents have been copied, and the caller gives up the old pointer.
        unsafe { self.deallocate(block)? };
        Ok(new)
    }

    /// Calls `look` with each shard's heap in turn, locked, for statistics and checks. `look` must not use this heap otherwise: a thread that allocates or frees
    /// in it, or lets a collection over it grow, waits for itself for ever.
    ///
    /// ```
    /// # use core::mem::MaybeUninit;
    /// # #[repr(align(16))] struct Memory([MaybeUninit<u8>; 1 << 16]);
    /// # let mut memory = Memory([MaybeUninit::uninit(); 1 << 16]);
    /// let heap = freestone_tlsf::Sharded::<4>::new(&mut memory.0)?;
    /// let mut free_bytes = 0;
    /// heap.each_shard(|shard| free_bytes += shard.stats().free_bytes);
    /// assert!(free_bytes > 60_000);
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
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

/// A number that differs between most threads: it comes from the 64 KiB of address space that the stack pointer is in.
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
        // SAFETY: nothing uses the block any more: the trait's contract.
        unsafe { self.deallocate(block) }
    }
    unsafe fn reallocate(&self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        // SAFETY: after success nothing uses the old pointer: the trait's contract.
        unsafe { self.reallocate(block, bytes, align) }
    }
}

#[cfg(test)]
mod tests;
