//! A heap that threads share: one lock around it.
//!
//! How to wait is a parameter; the default spins, for there may be no operating system below. On a system with thread
//! priorities, hand in a [`Parking`] that knows about them.
//!
//! # Safety
//! The locks make `&mut` access exclusive; everything else is the heap's.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::policy::{Policy, Standard};
use crate::tlsf::Tlsf;
use core::ptr::NonNull;
use freestone_base::lock::{Guard, Lock, Parking, Spin};

/// Something blocks come from and go back to through a shared reference.
pub(crate) trait SharedHeap {
    fn allocate(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error>;
    /// # Safety
    /// As [`Tlsf::deallocate`].
    unsafe fn deallocate(&self, block: NonNull<u8>) -> Result<(), Error>;
    /// # Safety
    /// As [`Tlsf::reallocate`].
    unsafe fn reallocate(&self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<NonNull<u8>, Error>;
}

/// A heap behind one lock.
///
/// ```
/// use freestone_tlsf::{Locked, Tlsf};
/// static HEAP: Locked = Locked::new(Tlsf::new());
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let memory = Box::leak(Box::new(Memory([core::mem::MaybeUninit::uninit(); 4096])));
/// HEAP.lock().add_region(&mut memory.0)?;
/// let block = HEAP.allocate(64, 8)?;
/// // SAFETY: nobody uses the block any more.
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
    #[must_use]
    pub const fn new(heap: Tlsf<'pool, P, FIRST, SECOND, REGIONS>) -> Self {
        Self { heap: Lock::new(heap) }
    }

    /// The heap itself, for as long as the guard lives.
    pub fn lock(&self) -> Guard<'_, Tlsf<'pool, P, FIRST, SECOND, REGIONS>, W, 0> {
        self.heap.lock()
    }

    /// As [`Tlsf::allocate`].
    ///
    /// # Errors
    /// As [`Tlsf::allocate`].
    #[inline]
    pub fn allocate(&self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        self.lock().allocate(bytes, align)
    }

    /// As [`Tlsf::deallocate`].
    ///
    /// # Errors
    /// As [`Tlsf::deallocate`].
    ///
    /// # Safety
    /// As [`Tlsf::deallocate`].
    #[inline]
    pub unsafe fn deallocate(&self, block: NonNull<u8>) -> Result<(), Error> {
        // SAFETY: the same obligation.
        unsafe { self.lock().deallocate(block) }
    }

    /// As [`Tlsf::reallocate`].
    ///
    /// # Errors
    /// As [`Tlsf::reallocate`].
    ///
    /// # Safety
    /// As [`Tlsf::reallocate`].
    pub unsafe fn reallocate(&self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        // SAFETY: the same obligation.
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
        // SAFETY: the same obligation.
        unsafe { self.deallocate(block) }
    }
    unsafe fn reallocate(&self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        // SAFETY: the same obligation.
        unsafe { self.reallocate(block, bytes, align) }
    }
}
