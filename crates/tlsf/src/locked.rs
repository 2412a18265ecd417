//! A heap that threads share, behind one lock.
//!
//! How a thread waits for the lock is a parameter. The default spins, because there may be no operating system. On a system with thread
//! priorities, pass a [`Parking`] through which the kernel knows the waiting threads.
//!
//! # Safety
//! The methods have the contract of the heap's own: the block is one of this heap's, and nothing uses it any more. The lock makes
//! access exclusive.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::policy::{Policy, Standard};
use crate::tlsf::Tlsf;
use core::ptr::NonNull;
use freestone_base::lock::{Guard, Lock, Parking, Spin};

/// A heap that is used through a shared reference.
pub(crate) trait SharedHeap {
    fn allocate(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error>;
    /// # Safety
    /// - As [`Tlsf::deallocate`]: nothing uses the block afterwards.
    unsafe fn deallocate(&self, block: NonNull<u8>) -> Result<(), Error>;
    /// # Safety
    /// - As [`Tlsf::reallocate`]: after success nothing uses the old pointer.
    unsafe fn reallocate(&self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<NonNull<u8>, Error>;
}

/// A heap behind one lock, for threads.
///
/// It is also a `GlobalAlloc`, and with the feature `allocator-api2` a reference to it is an `Allocator`. [`Sharded`](crate::Sharded) waits
/// less where many threads allocate at once.
///
/// ```
/// use freestone_tlsf::{Locked, Tlsf};
/// static HEAP: Locked = Locked::new(Tlsf::new());
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let memory = Box::leak(Box::new(Memory([core::mem::MaybeUninit::uninit(); 4096])));
/// HEAP.lock().add_region(&mut memory.0)?;
/// let block = HEAP.allocate(64, 8)?;
/// // SAFETY: nothing uses the block any more.
/// unsafe { HEAP.deallocate(block)? };
/// # Ok::<(), freestone_tlsf::Error>(())
/// ```
pub struct Locked<
    'pool,
    P = Standard,
    W: Parking = Spin,
    const FIRST: usize = 35,
    const SECOND: usize = 32,
    const REGIONS: usize = 4,
> {
    heap: Lock<Tlsf<'pool, P, FIRST, SECOND, REGIONS>, W>,
}

impl<'pool, P: Policy, W: Parking, const FIRST: usize, const SECOND: usize, const REGIONS: usize>
    Locked<'pool, P, W, FIRST, SECOND, REGIONS>
{
    /// Puts a lock around `heap`.
    ///
    /// ```
    /// use freestone_tlsf::{Locked, Spin, Standard, Tlsf};
    ///
    /// // One region of at most 1 MiB: the control structure is smaller than the default's.
    /// static HEAP: Locked<'static, Standard, Spin, 15, 32, 1> = Locked::new(Tlsf::with_policy());
    /// assert!(HEAP.allocate(64, 16).is_err(), "it has no memory yet");
    /// ```
    #[must_use]
    pub const fn new(heap: Tlsf<'pool, P, FIRST, SECOND, REGIONS>) -> Self {
        Self { heap: Lock::new(heap) }
    }

    /// Locks the heap: the guard gives exclusive access to it, and unlocks it when it is dropped. Until then the thread must use the heap through the guard
    /// alone: by any other way, or with a collection over the heap that grows, it waits for itself for ever.
    ///
    /// ```
    /// use freestone_tlsf::{Locked, Tlsf};
    ///
    /// static HEAP: Locked = Locked::new(Tlsf::new());
    /// assert_eq!(HEAP.lock().region_bytes(), 0);
    /// ```
    pub fn lock(&self) -> Guard<'_, Tlsf<'pool, P, FIRST, SECOND, REGIONS>, W, 0> {
        self.heap.lock()
    }

    /// Allocates as [`Tlsf::allocate`] does.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let heap: freestone_tlsf::Locked<'_> = freestone_tlsf::Locked::new(freestone_tlsf::Tlsf::new());
    /// # heap.lock().add_region(&mut memory.0)?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| assert!(heap.allocate(100, 16).is_ok()));
    ///     scope.spawn(|| assert!(heap.allocate(100, 16).is_ok()));
    /// });
    /// assert_eq!(heap.lock().stats().used_blocks, 2);
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tlsf::allocate`].
    #[inline]
    pub fn allocate(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        self.lock().allocate(bytes, align)
    }

    /// Frees as [`Tlsf::deallocate`] does, a block that any thread allocated.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let heap: freestone_tlsf::Locked<'_> = freestone_tlsf::Locked::new(freestone_tlsf::Tlsf::new());
    /// # heap.lock().add_region(&mut memory.0)?;
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
    #[inline]
    pub unsafe fn deallocate(&self, block: NonNull<u8>) -> Result<(), Error> {
        // SAFETY: nothing uses the block any more: this function's contract.
        unsafe { self.lock().deallocate(block) }
    }

    /// Changes the size of a block as [`Tlsf::reallocate`] does.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let heap: freestone_tlsf::Locked<'_> = freestone_tlsf::Locked::new(freestone_tlsf::Tlsf::new());
    /// # heap.lock().add_region(&mut memory.0)?;
    /// let block = heap.allocate(100, 16)?;
    /// // SAFETY: the old pointer is not used again; the block has 100 bytes or more.
    /// unsafe {
    ///     block.write(7);
    ///     let block = heap.reallocate(block, 2000, 16)?;
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
        // SAFETY: after success nothing uses the old pointer: this function's contract.
        unsafe { self.lock().reallocate(block, bytes, align) }
    }
}

impl<P: Policy, W: Parking, const FIRST: usize, const SECOND: usize, const REGIONS: usize> SharedHeap
    for Locked<'_, P, W, FIRST, SECOND, REGIONS>
{
    #[inline]
    fn allocate(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        self.allocate(bytes, align)
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>) -> Result<(), Error> {
        // SAFETY: nothing uses the block any more: the trait's contract.
        unsafe { self.deallocate(block) }
    }
    unsafe fn reallocate(&self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        // SAFETY: after success nothing uses the old pointer: the trait's contract.
        unsafe { self.reallocate(block, bytes, align) }
    }
}
