//! Values in a pool: a block holds a `T`, and a handle owns it.
//!
//! ```text
//! pool.allocate(value) ──▶ Handle ── drop ──▶ value dropped, block freed
//!                            └── into_inner ──▶ value moved out, block freed
//! ```
//!
//! A type chooses where the blocks come from: [`Local`], for handles of one thread, or [`SharedPool`], for handles that can
//! move between threads. A handle borrows its pool, so the pool outlives it.
//!
//! Long because: every public method has its example.
//!
//! # Safety
//! A handle is made from a block that was just allocated, has the only pointer to it, and frees it once.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::fallback::{self, Fallback, NoFallback};
use crate::fixed::FixedPool;
use crate::shape::Shape;
#[cfg(target_has_atomic = "64")]
use crate::shared::SharedPool;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// Where the blocks of a [`Pool`] come from.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// use core::cell::Cell;
/// use core::ptr::NonNull;
/// use freestone_pool::{Error, FixedPool, Local, Pool, Shape, Source};
///
/// /// A source that counts what was ever taken from it.
/// struct Counted<S>(S, Cell<usize>);
/// // SAFETY: the blocks are those of another source.
/// unsafe impl<S: Source> Source for Counted<S> {
///     fn shape(&self) -> Shape {
///         self.0.shape()
///     }
///     fn take(&self) -> Result<NonNull<u8>, Error> {
///         self.0.take().inspect(|_| self.1.set(self.1.get() + 1))
///     }
///     unsafe fn give_back(&self, block: NonNull<u8>) {
///         // SAFETY: the block was taken from that source.
///         unsafe { self.0.give_back(block) }
///     }
/// }
/// let fixed = FixedPool::new(Shape::of::<u64>(16)?, &mut memory.0)?;
/// let pool: Pool<u64, _> = Pool::new(Counted(Local::new(fixed), Cell::new(0)))?;
/// drop(pool.allocate(7));
/// drop(pool.allocate(8));
/// assert_eq!(pool.source().1.get(), 2);
/// # Ok::<(), freestone_pool::Error>(())
/// ```
///
/// # Safety
/// - A block that [`Source::take`] returns has the shape's size and alignment. Until it is given back it is not returned again, and it is valid while
///   the source is neither moved nor borrowed exclusively.
pub unsafe trait Source {
    /// The size, number and alignment of its blocks.
    fn shape(&self) -> Shape;

    /// Allocates a block.
    ///
    /// # Errors
    /// [`Error::Exhausted`]: no block is left.
    fn take(&self) -> Result<NonNull<u8>, Error>;

    /// Frees a block.
    ///
    /// # Safety
    /// - [`Source::take`] of this source returned the block, it was not given back since, and nothing uses it afterwards.
    unsafe fn give_back(&self, block: NonNull<u8>);
}

/// A [`FixedPool`] that the handles of one thread share. Its fallback may itself use it, and may have its blocks in itself.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// use freestone_pool::{FixedPool, Local, Pool, Shape};
///
/// let fixed = FixedPool::new(Shape::of::<u64>(16)?, &mut memory.0)?;
/// let pool: Pool<u64, Local<'_>> = Pool::new(Local::new(fixed))?;
/// let (one, two) = (pool.allocate(1).expect("a block"), pool.allocate(2).expect("a block"));
/// assert_eq!(*one + *two, 3);
/// # Ok::<(), freestone_pool::Error>(())
/// ```
pub struct Local<'m, F = NoFallback>(UnsafeCell<FixedPool<'m, F>>);

impl<'m, F> Local<'m, F> {
    /// Makes `pool` the source of the handles of one thread.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// use freestone_pool::{FixedPool, HeapFallback, Local, Pool, Shape};
    ///
    /// let fixed = FixedPool::new(Shape::of::<u64>(1)?, &mut memory.0)?.with_fallback(HeapFallback(std::alloc::System));
    /// let pool: Pool<u64, _> = Pool::new(Local::new(fixed))?;
    /// let (_one, two) = (pool.allocate(1), pool.allocate(2));
    /// assert!(two.is_ok_and(|two| *two == 2), "from the fallback");
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    pub const fn new(pool: FixedPool<'m, F>) -> Self {
        Self(UnsafeCell::new(pool))
    }

    /// The pool, to inspect or close it.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// let pool = freestone_pool::Pool::local(16, &mut memory.0)?;
    /// drop(pool.allocate(7_u64));
    /// let fixed = pool.into_source().into_inner();
    /// assert_eq!(fixed.stats().n_used, 0);
    /// assert!(fixed.close().is_ok());
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    pub fn into_inner(self) -> FixedPool<'m, F> {
        self.0.into_inner()
    }
}

impl<F: Fallback> Local<'_, F> {
    /// The fallback. It may call this pool, and its blocks may lie in itself, so it is called while the pool's own blocks are not borrowed, and is
    /// never borrowed exclusively.
    fn fallback(&self) -> &F {
        // SAFETY: the only exclusive borrows are of the field beside it.
        unsafe { &(*self.0.get()).fallback }
    }

    #[cold]
    fn take_fresh(&self) -> Result<NonNull<u8>, Error> {
        // SAFETY: `Local` is not `Sync`, and no other borrow of the blocks is alive: each ends before any other code runs.
        let blocks = unsafe { &mut (*self.0.get()).blocks };
        match blocks.take_fresh()? {
            Some(block) => Ok(block),
            None => fallback::ask(self.fallback(), self.shape()),
        }
    }
}

// SAFETY: the pool's blocks are distinct and lie in memory that does not move with it, and those of the fallback are valid while `Local` is neither moved
// nor borrowed exclusively, because nothing else borrows the fallback exclusively.
unsafe impl<F: Fallback> Source for Local<'_, F> {
    #[inline]
    fn shape(&self) -> Shape {
        // SAFETY: `Local` is not `Sync`, and no other borrow of the blocks is alive: each ends before any other code runs.
        unsafe { &(*self.0.get()).blocks }.grid.shape
    }
    #[inline]
    fn take(&self) -> Result<NonNull<u8>, Error> {
        // SAFETY: as in `shape`.
        match unsafe { &mut (*self.0.get()).blocks }.pop() {
            Some(block) => Ok(block),
            None => self.take_fresh(),
        }
    }
    #[inline]
    unsafe fn give_back(&self, block: NonNull<u8>) {
        // SAFETY: as in `shape`.
        let blocks = unsafe { &mut (*self.0.get()).blocks };
        if !blocks.put(block) {
            let (grid, n_carved) = (blocks.grid, blocks.n_carved);
            // SAFETY: the block was taken from this pool and nothing uses it: the trait's contract. So it is the fallback's, and not refused.
            let _freed = unsafe { fallback::give_back(self.fallback(), grid, n_carved, block) };
        }
    }
}

#[cfg(target_has_atomic = "64")]
// SAFETY: the pool's blocks are distinct and lie in memory that does not move with it, and those of the fallback are valid while the pool is neither
// moved nor borrowed exclusively.
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
        // SAFETY: the block was taken from this pool and nothing uses it: the trait's contract. It is therefore not refused.
        let _freed = unsafe { self.deallocate(block) };
    }
}

/// A pool of values of type `T`.
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

/// A value for which the pool had no block, and the reason.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// use freestone_pool::{Error, Pool};
///
/// let pool = Pool::local(1, &mut memory.0)?;
/// let _first = pool.allocate(String::from("first"));
/// let refused = pool.allocate(String::from("second")).expect_err("there is one block");
/// assert_eq!((refused.value.as_str(), refused.error), ("second", Error::Exhausted { count: 1, block_bytes: size_of::<String>() }));
/// # Ok::<(), freestone_pool::Error>(())
/// ```
pub struct Refused<T> {
    /// The value, unchanged.
    pub value: T,
    /// Why there was no block.
    pub error: Error,
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<'m, T> Pool<T, Local<'m>> {
    /// Makes a pool of `count` values for one thread, in `region`, of which it uses the [`Shape::region_bytes`] of [`Shape::of`].
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// use freestone_pool::Pool;
    ///
    /// let pool = Pool::local(16, &mut memory.0)?;
    /// let words = pool.allocate(String::from("dropped with its handle")).map_err(|refused| refused.error)?;
    /// assert_eq!(words.len(), 23);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Shape::of`] and [`FixedPool::new`].
    pub fn local(count: usize, region: &'m mut [MaybeUninit<u8>]) -> Result<Self, Error> {
        Ok(Self::from_fixed(FixedPool::new(Shape::of::<T>(count)?, region)?))
    }

    /// Makes a pool of `count` values for one thread, in the `bytes` bytes at `start`.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// use core::ptr::NonNull;
    /// use freestone_pool::Pool;
    ///
    /// // SAFETY: only the pool uses the memory.
    /// let pool = unsafe { Pool::local_at(16, NonNull::from(&mut memory.0).cast(), 4096)? };
    /// let number = pool.allocate(7_u64).map_err(|refused| refused.error)?;
    /// assert_eq!(*number, 7);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Shape::of`] and [`FixedPool::new`].
    ///
    /// # Safety
    /// As [`FixedPool::new_at`].
    pub unsafe fn local_at(count: usize, start: NonNull<u8>, bytes: usize) -> Result<Self, Error> {
        // SAFETY: the memory is valid and the pool's alone: this function's contract.
        Ok(Self::from_fixed(unsafe { FixedPool::new_at(Shape::of::<T>(count)?, start, bytes)? }))
    }

    fn from_fixed(pool: FixedPool<'m>) -> Self {
        Self { source: Local::new(pool), values: PhantomData }
    }
}

impl<T, S: Source> Pool<T, S> {
    /// A pool of values in the blocks of `source`: a [`SharedPool`], for handles that move between threads, or a pool with a fallback.
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// use freestone_pool::{Pool, SharedPool};
    ///
    /// let pool: Pool<u64, _> = Pool::new(SharedPool::new(shape, &mut memory.0)?)?;
    /// let number = pool.allocate(7).map_err(|refused| refused.error)?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || assert_eq!(*number, 7));
    /// });
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::RegionTooSmall`] if a block is too small for a `T`, [`Error::BadAlignment`] if it is not aligned for one.
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

    /// Moves `value` into a block, and returns a handle that owns it.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// let pool = freestone_pool::Pool::local(1, &mut memory.0)?;
    /// let mut list = pool.allocate(vec![1, 2]).map_err(|refused| refused.error)?;
    /// list.push(3);
    /// assert_eq!(*list, [1, 2, 3]);
    /// assert!(pool.allocate(vec![4]).is_err(), "the one block is in use");
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// No block is left: [`Refused`] has the value, and the error.
    #[inline]
    pub fn allocate(&self, value: T) -> Result<Handle<'_, T, S>, Refused<T>> {
        match self.source.take() {
            Ok(block) => {
                let block = block.cast::<T>();
                // SAFETY: the block was just allocated; `new` checked that it has the size and alignment of a `T`.
                unsafe { block.write(value) };
                Ok(Handle { block, source: &self.source, value: PhantomData })
            }
            Err(error) => Err(Refused { value, error }),
        }
    }

    /// The source of the blocks.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// use freestone_pool::{Pool, SharedPool, Shape};
    ///
    /// let pool: Pool<u64, _> = Pool::new(SharedPool::new(Shape::of::<u64>(16)?, &mut memory.0)?)?;
    /// let _number = pool.allocate(7);
    /// assert_eq!(pool.source().stats().n_used, 1);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Ends the pool of values and returns the source. No handle is alive, because a handle borrows the pool.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// let pool = freestone_pool::Pool::local(16, &mut memory.0)?;
    /// drop(pool.allocate(7_u64));
    /// assert!(pool.into_source().into_inner().close().is_ok());
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    pub fn into_source(self) -> S {
        self.source
    }
}

/// An owned value in a [`Pool`]: dropping the handle drops the value and frees the block.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// use freestone_pool::{Handle, Local, Pool};
///
/// struct Player<'p> {
///     name: Handle<'p, String, Local<'p>>,
/// }
/// let pool = Pool::local(16, &mut memory.0)?;
/// let player = Player { name: pool.allocate(String::from("Ada")).map_err(|refused| refused.error)? };
/// assert_eq!(player.name.len(), 3);
/// # Ok::<(), freestone_pool::Error>(())
/// ```
pub struct Handle<'p, T, S: Source> {
    block: NonNull<T>,
    source: &'p S,
    value: PhantomData<T>,
}

// SAFETY: sending a handle sends its value and a shared reference to its source.
unsafe impl<T: Send, S: Source + Sync> Send for Handle<'_, T, S> {}
// SAFETY: a shared handle gives shared access to its value and its source.
unsafe impl<T: Sync, S: Source + Sync> Sync for Handle<'_, T, S> {}

impl<T, S: Source> Handle<'_, T, S> {
    /// Moves the value out and frees the block.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// let pool = freestone_pool::Pool::local(16, &mut memory.0)?;
    /// let handle = pool.allocate(String::from("kept")).map_err(|refused| refused.error)?;
    /// let text: String = handle.into_inner();
    /// assert_eq!(text, "kept");
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    #[inline]
    pub fn into_inner(self) -> T {
        let handle = ManuallyDrop::new(self);
        // SAFETY: the handle owns an initialised value, and is not dropped: the value is moved out once.
        let value = unsafe { handle.block.read() };
        // SAFETY: the block came from this source, and its value has been moved out; the handle is not dropped.
        unsafe { handle.source.give_back(handle.block.cast()) };
        value
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
        /// Frees the block when it goes, also if dropping the value panics.
        struct Emptied<'p, S: Source>(NonNull<u8>, &'p S);
        impl<S: Source> Drop for Emptied<'_, S> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the block came from this source, and its value has been dropped.
                unsafe { self.1.give_back(self.0) };
            }
        }
        let _emptied = Emptied(self.block.cast(), self.source);
        // SAFETY: the handle owns an initialised value, which no code uses after this.
        unsafe { self.block.drop_in_place() };
    }
}

impl<T: fmt::Debug, S: Source> fmt::Debug for Handle<'_, T, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}
