//! Values in a pool: a block holds a `T`, and a handle owns it.
//!
//! ```text
//! pool.allocate(value) ──▶ Handle ── drop ──▶ value dropped, block given back
//!                            └── into_inner ──▶ value moved out, block given back
//! ```
//!
//! Where the blocks come from is a type: [`Local`], for the handles of one thread, or [`SharedPool`], for handles that may
//! move between threads. A handle borrows its pool, so the pool cannot end before it.
//!
//! # Safety
//! A handle is the only one that knows its block; it is made from a block just handed out, and gives it back once.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::fallback::{Fallback, NoFallback};
use crate::fixed::FixedPool;
use crate::shape::Shape;
use crate::shared::SharedPool;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// Where the blocks of a [`Pool`] come from.
///
/// # Safety
/// - A block that is taken has the shape's size and alignment, and is nobody else's until it is given back, wherever the source is moved.
pub unsafe trait Source {
    /// Size, number and alignment of its blocks.
    fn shape(&self) -> Shape;

    /// A block.
    ///
    /// # Errors
    /// None is left.
    fn take(&self) -> Result<NonNull<u8>, Error>;

    /// Takes a block back.
    ///
    /// # Safety
    /// - The block was taken from this source, was not given back since, and nothing uses it afterwards.
    unsafe fn give_back(&self, block: NonNull<u8>);
}

/// A [`FixedPool`] that the handles of one thread share.
pub struct Local<'m, F = NoFallback>(UnsafeCell<FixedPool<'m, F>>);

impl<'m, F> Local<'m, F> {
    /// Lets the handles of one thread share `pool`.
    pub const fn new(pool: FixedPool<'m, F>) -> Self {
        Self(UnsafeCell::new(pool))
    }

    /// The pool, to look at it or end it.
    pub fn into_inner(self) -> FixedPool<'m, F> {
        self.0.into_inner()
    }
}

// SAFETY: the pool's blocks are distinct and lie in memory that does not move with it. The borrows of the cell end before a call returns
// and run no code of the user's but the fallback's, which promised not to come back; `Local` is not `Sync`.
unsafe impl<F: Fallback> Source for Local<'_, F> {
    #[inline]
    fn shape(&self) -> Shape {
        // SAFETY: see above.
        unsafe { &*self.0.get() }.shape()
    }
    #[inline]
    fn take(&self) -> Result<NonNull<u8>, Error> {
        // SAFETY: see above.
        unsafe { &mut *self.0.get() }.allocate()
    }
    #[inline]
    unsafe fn give_back(&self, block: NonNull<u8>) {
        // SAFETY: see above; the caller's promise makes a refusal impossible.
        let _given_back = unsafe { (*self.0.get()).deallocate(block) };
    }
}

// SAFETY: the pool's blocks are distinct and lie in memory that does not move with it.
unsafe impl<F: Fallback> Source for SharedPool<'_, F> {
    #[inline]
    fn shape(&self) -> Shape {
        self.shape()
    }
    #[inline]
    fn take(&self) -> Result<NonNull<u8>, Error> {
        self.allocate()
    }
    #[inline]
    unsafe fn give_back(&self, block: NonNull<u8>) {
        // SAFETY: the caller's promise makes a refusal impossible.
        let _given_back = unsafe { self.deallocate(block) };
    }
}

/// A pool of `T`s.
///
/// ```
/// use core::mem::MaybeUninit;
/// use freestone_pool::{Error, Pool, Shape};
///
/// struct Connection {
///     peer: [u8; 4],
///     sent: u64,
/// }
/// let shape = Shape::of::<Connection>(100)?;
/// let mut memory = vec![MaybeUninit::<u64>::uninit(); shape.region_bytes().div_ceil(8)];
/// // SAFETY: the vector lives longer than the pool.
/// let pool = unsafe { Pool::local_at(100, core::ptr::NonNull::from(&mut memory[..]).cast(), memory.len() * 8)? };
///
/// let mut connection = pool.allocate(Connection { peer: [127, 0, 0, 1], sent: 0 }).map_err(|refused| refused.error)?;
/// connection.sent += 1;
/// drop(connection);
/// assert!(pool.into_source().into_inner().close().is_ok());
/// # Ok::<(), Error>(())
/// ```
pub struct Pool<T, S> {
    source: S,
    values: PhantomData<fn(T) -> T>,
}

/// A value that the pool had no block for, and why.
pub struct Refused<T> {
    /// The value, unharmed.
    pub value: T,
    /// Why it has no block.
    pub error: Error,
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<'m, T> Pool<T, Local<'m>> {
    /// A pool of `count` values for one thread, in `region`, of which it uses the [`Shape::region_bytes`] of [`Shape::of`].
    ///
    /// # Errors
    /// As [`Shape::of`] and [`FixedPool::new`].
    pub fn local(count: usize, region: &'m mut [MaybeUninit<u8>]) -> Result<Self, Error> {
        Ok(Self::from_fixed(FixedPool::new(Shape::of::<T>(count)?, region)?))
    }

    /// A pool of `count` values for one thread, in the `bytes` at `start`.
    ///
    /// # Errors
    /// As [`Shape::of`] and [`FixedPool::new`].
    ///
    /// # Safety
    /// As [`FixedPool::new_at`].
    pub unsafe fn local_at(count: usize, start: NonNull<u8>, bytes: usize) -> Result<Self, Error> {
        // SAFETY: the same obligation.
        Ok(Self::from_fixed(unsafe { FixedPool::new_at(Shape::of::<T>(count)?, start, bytes)? }))
    }

    fn from_fixed(pool: FixedPool<'m>) -> Self {
        Self { source: Local::new(pool), values: PhantomData }
    }
}

impl<T, S: Source> Pool<T, S> {
    /// A pool of `T`s in the blocks of `source`: a [`SharedPool`], for handles that move between threads, or one with a fallback.
    ///
    /// # Errors
    /// The blocks are too small for a `T`, or not aligned for it: [`Error::RegionTooSmall`], [`Error::BadAlignment`].
    pub fn new(source: S) -> Result<Self, Error> {
        let shape = source.shape();
        if shape.block_bytes() < size_of::<T>() {
            return Err(Error::RegionTooSmall { bytes: shape.block_bytes(), least: size_of::<T>() });
        }
        if shape.align() < align_of::<T>() {
            return Err(Error::BadAlignment { align: shape.align() });
        }
        Ok(Self { source, values: PhantomData })
    }

    /// Moves `value` into a block.
    ///
    /// # Errors
    /// No block is left; the value comes back with the error.
    #[inline]
    pub fn allocate(&self, value: T) -> Result<Handle<'_, T, S>, Refused<T>> {
        match self.source.take() {
            Ok(block) => {
                let block = block.cast::<T>();
                // SAFETY: the block was just handed out and holds a `T`.
                unsafe { block.write(value) };
                Ok(Handle { block, source: &self.source, value: PhantomData })
            }
            Err(error) => Err(Refused { value, error }),
        }
    }

    /// Where the blocks come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Ends the pool of values; no handle is alive, for it would borrow the pool.
    pub fn into_source(self) -> S {
        self.source
    }
}

/// A value in a [`Pool`], owned: dropping the handle drops the value and gives the block back.
pub struct Handle<'p, T, S: Source> {
    block: NonNull<T>,
    source: &'p S,
    value: PhantomData<T>,
}

// SAFETY: a handle owns its value, and uses its source through a shared reference.
unsafe impl<T: Send, S: Source + Sync> Send for Handle<'_, T, S> {}
// SAFETY: a shared handle gives a shared value.
unsafe impl<T: Sync, S: Source + Sync> Sync for Handle<'_, T, S> {}

impl<T, S: Source> Handle<'_, T, S> {
    /// Moves the value out and gives the block back.
    #[inline]
    pub fn into_inner(self) -> T {
        let handle = ManuallyDrop::new(self);
        // SAFETY: the handle owns an initialised value, and is not dropped: value and block leave it once.
        unsafe {
            let value = handle.block.read();
            handle.source.give_back(handle.block.cast());
            value
        }
    }
}

impl<T, S: Source> Deref for Handle<'_, T, S> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the handle owns an initialised value.
        unsafe { self.block.as_ref() }
    }
}

impl<T, S: Source> DerefMut for Handle<'_, T, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the handle owns an initialised value, and is borrowed exclusively.
        unsafe { self.block.as_mut() }
    }
}

impl<T, S: Source> Drop for Handle<'_, T, S> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the handle owns an initialised value, which ends here; then the block is nobody's.
        unsafe {
            self.block.drop_in_place();
            self.source.give_back(self.block.cast());
        }
    }
}

impl<T: fmt::Debug, S: Source> fmt::Debug for Handle<'_, T, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}
