//! What a pool holds, and whether it is intact: counted and walked on request.
//!
//! Nothing is counted while allocating: a counter would cost every call, and a walk is always right. Cost: linear in the number of blocks that
//! were ever in use. While other threads use a shared pool, the numbers are those of slightly different moments; only
//! [`SharedPool::check`], which borrows the pool exclusively, is exact.
//!
//! # Safety
//! Only blocks below the high-water mark are read: they exist, and their groups were begun.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::fixed::FixedPool;
use crate::grid::Grid;
use crate::shape::Shape;
#[cfg(target_has_atomic = "64")]
use crate::shared::SharedPool;
use core::ptr::NonNull;

/// What a pool holds. `n_used + n_free + n_fresh` is the count of its shape; `n_used + n_free` is the greatest number of blocks that were ever
/// in use at once (in a shared pool, in use or in magazines).
///
/// ```
/// # use freestone_pool::{Error, FixedPool, Shape};
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
/// # let shape = Shape::new(64, 16)?;
/// let mut pool = FixedPool::new(shape, &mut memory.0)?;
/// let _block = pool.allocate()?;
/// let stats = pool.stats();
/// assert_eq!((stats.n_used, stats.n_free, stats.n_fresh), (1, 0, 15));
/// # Ok::<(), freestone_pool::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of blocks in use.
    pub n_used: usize,
    /// The number of blocks that were in use before and can be allocated again.
    pub n_free: usize,
    /// The number of blocks that were never in use: their memory has not been touched.
    pub n_fresh: usize,
    /// Bytes of a block that may be used.
    pub block_bytes: usize,
    /// Bytes from one block to the next.
    pub spacing_bytes: usize,
}

/// What both kinds of pool report, in terms of what differs between them.
trait Inspect {
    fn grid(&self) -> &Grid;
    /// The high-water mark.
    fn n_carved(&self) -> usize;
    /// Whether the block `index`, which can be any number, is in use.
    fn is_used(&self, index: usize) -> bool;

    fn usable_size_of(&self, block: NonNull<u8>) -> Result<usize, Error> {
        let address = block.addr().get();
        if self.is_used(self.grid().index_of(address)) {
            return Ok(self.grid().shape.block_bytes());
        }
        Err(self.grid().diagnose(address, self.n_carved()))
    }

    fn used(&self) -> impl Iterator<Item = NonNull<u8>> {
        // SAFETY: the indices are below the high-water mark, so below the count.
        (0..self.n_carved()).filter(|&index| self.is_used(index)).map(|index| unsafe { self.grid().block(index) })
    }

    fn count(&self) -> Stats {
        let (n_carved, shape) = (self.n_carved(), self.grid().shape);
        let n_used = self.used().count().min(n_carved);
        Stats {
            n_used,
            n_free: n_carved - n_used,
            n_fresh: shape.count() - n_carved,
            block_bytes: shape.block_bytes(),
            spacing_bytes: shape.spacing(),
        }
    }

    fn idle(&self) -> Result<(), Error> {
        match self.used().next() {
            Some(first) => Err(Error::InUse { block: first.addr().get(), n_blocks: self.used().count() }),
            None => Ok(()),
        }
    }
}

impl<F> Inspect for FixedPool<'_, F> {
    fn grid(&self) -> &Grid {
        &self.blocks.grid
    }
    fn n_carved(&self) -> usize {
        self.blocks.n_carved
    }
    fn is_used(&self, index: usize) -> bool {
        // SAFETY: the group of every block below the high-water mark was begun.
        index < self.blocks.n_carved && !unsafe { self.blocks.groups.is_free(index) }
    }
}

#[cfg(target_has_atomic = "64")]
impl<F> Inspect for SharedPool<'_, F> {
    fn grid(&self) -> &Grid {
        &self.grid
    }
    fn n_carved(&self) -> usize {
        self.links.n_carved()
    }
    fn is_used(&self, index: usize) -> bool {
        self.links.is_used(index)
    }
}

/// The public methods that report on a pool.
macro_rules! inspection {
    ($pool:ident) => {
        impl<F> $pool<'_, F> {
            /// The pool's shape.
            ///
            /// ```
            /// # use freestone_pool::{Error, FixedPool, SharedPool, Shape};
            /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
            /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
            /// # let shape = Shape::new(64, 16)?;
            #[doc = concat!(" let mut pool = ", stringify!($pool), "::new(shape, &mut memory.0)?;")]
            /// assert_eq!(pool.shape(), shape);
            /// # Ok::<(), freestone_pool::Error>(())
            /// ```
            #[must_use]
            pub fn shape(&self) -> Shape {
                Inspect::grid(self).shape
            }

            /// Whether `block` is an address in the pool's blocks. If not, it may be a block of the fallback.
            ///
            /// ```
            /// # use freestone_pool::{Error, FixedPool, SharedPool, Shape};
            /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
            /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
            /// # let shape = Shape::new(64, 16)?;
            #[doc = concat!(" let mut pool = ", stringify!($pool), "::new(shape, &mut memory.0)?;")]
            /// let block = pool.allocate()?;
            /// assert!(pool.contains(block));
            /// assert!(!pool.contains(core::ptr::NonNull::from(&shape).cast()));
            /// # Ok::<(), freestone_pool::Error>(())
            /// ```
            #[inline]
            #[must_use]
            pub fn contains(&self, block: NonNull<u8>) -> bool {
                Inspect::grid(self).contains(block.addr().get())
            }

            /// The number of bytes of a block in use that may be used: [`Shape::block_bytes`].
            ///
            /// ```
            /// # use freestone_pool::{Error, FixedPool, SharedPool, Shape};
            /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
            /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
            /// # let shape = Shape::new(64, 16)?;
            #[doc = concat!(" let mut pool = ", stringify!($pool), "::new(shape, &mut memory.0)?;")]
            /// let block = pool.allocate()?;
            /// assert_eq!(pool.usable_size(block), Ok(64));
            /// // SAFETY: the block is not used afterwards.
            /// unsafe { pool.deallocate(block)? };
            /// assert!(matches!(pool.usable_size(block), Err(Error::DoubleFree { .. })));
            /// # Ok::<(), freestone_pool::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `deallocate`; a block of the fallback is [`Error::Foreign`].
            pub fn usable_size(&self, block: NonNull<u8>) -> Result<usize, Error> {
                self.usable_size_of(block)
            }

            /// The pool's blocks in use, in the order of their addresses: at the end of a program, its leaks. The fallback's are not among them.
            ///
            /// ```
            /// # use freestone_pool::{Error, FixedPool, SharedPool, Shape};
            /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
            /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
            /// # let shape = Shape::new(64, 16)?;
            #[doc = concat!(" let mut pool = ", stringify!($pool), "::new(shape, &mut memory.0)?;")]
            /// let leaked = pool.allocate()?;
            /// assert_eq!(pool.leaks().collect::<Vec<_>>(), [leaked]);
            /// # Ok::<(), freestone_pool::Error>(())
            /// ```
            pub fn leaks(&self) -> impl Iterator<Item = NonNull<u8>> {
                self.used()
            }

            /// Counts the blocks.
            ///
            /// ```
            /// # use freestone_pool::{Error, FixedPool, SharedPool, Shape};
            /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
            /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
            /// # let shape = Shape::new(64, 16)?;
            #[doc = concat!(" let mut pool = ", stringify!($pool), "::new(shape, &mut memory.0)?;")]
            /// let _block = pool.allocate()?;
            /// let stats = pool.stats();
            /// assert_eq!((stats.n_used, stats.n_free, stats.n_fresh), (1, 0, 15));
            /// # Ok::<(), freestone_pool::Error>(())
            /// ```
            ///
            /// # Complexity
            /// Linear in the number of blocks that were ever in use.
            #[must_use]
            pub fn stats(&self) -> Stats {
                self.count()
            }

            /// Checks that every block of the pool was freed. The fallback's are not counted.
            ///
            /// ```
            /// # use freestone_pool::{Error, FixedPool, SharedPool, Shape};
            /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
            /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
            /// # let shape = Shape::new(64, 16)?;
            #[doc = concat!(" let mut pool = ", stringify!($pool), "::new(shape, &mut memory.0)?;")]
            /// assert_eq!(pool.check_idle(), Ok(()));
            /// let block = pool.allocate()?;
            /// assert_eq!(pool.check_idle(), Err(Error::InUse { block: block.addr().get(), n_blocks: 1 }));
            /// # Ok::<(), freestone_pool::Error>(())
            /// ```
            ///
            /// # Errors
            /// [`Error::InUse`], with the first block in use and their number.
            pub fn check_idle(&self) -> Result<(), Error> {
                self.idle()
            }

            /// Ends the pool: its memory is its owner's again. (Dropping a pool checks nothing.) Blocks of the fallback are not counted, and the fallback
            /// is dropped.
            ///
            /// ```
            /// # use freestone_pool::{Error, FixedPool, SharedPool, Shape};
            /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
            /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
            /// # let shape = Shape::new(64, 16)?;
            #[doc = concat!(" let mut pool = ", stringify!($pool), "::new(shape, &mut memory.0)?;")]
            /// let block = pool.allocate()?;
            /// let Err((mut pool, Error::InUse { .. })) = pool.close() else { panic!("a block is in use") };
            /// // SAFETY: the block is not used afterwards.
            /// unsafe { pool.deallocate(block)? };
            /// assert!(pool.close().is_ok());
            /// # Ok::<(), freestone_pool::Error>(())
            /// ```
            ///
            /// # Errors
            /// [`Error::InUse`]: a block of the pool is still in use. The pool is returned with the error, unchanged.
            pub fn close(self) -> Result<(), (Self, Error)> {
                match self.idle() {
                    Ok(()) => Ok(()),
                    Err(error) => Err((self, error)),
                }
            }
        }
    };
}

inspection!(FixedPool);
#[cfg(target_has_atomic = "64")]
inspection!(SharedPool);

impl<F> FixedPool<'_, F> {
    /// Checks every invariant of the pool.
    ///
    /// ```
    /// # use freestone_pool::{Error, FixedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// use core::ptr::NonNull;
    ///
    /// let start = NonNull::from(&mut memory.0).cast::<u8>();
    /// // SAFETY: only the pool uses the memory.
    /// let mut pool = unsafe { FixedPool::new_at(shape, start, 8192)? };
    /// let (_first, second) = (pool.allocate()?, pool.allocate()?);
    /// // SAFETY: the block is not used afterwards.
    /// unsafe { pool.deallocate(second)? };
    /// assert_eq!(pool.check(), Ok(()));
    /// // SAFETY: for the example: a write behind the last of the 16 blocks, into the bookkeeping.
    /// unsafe { start.add(16 * 64).write_bytes(0xAA, 8) };
    /// assert!(matches!(pool.check(), Err(Error::Damaged { .. })));
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`], with the first of 64 blocks whose bookkeeping is wrong.
    ///
    /// # Complexity
    /// Linear in the number of blocks that were ever in use.
    pub fn check(&self) -> Result<(), Error> {
        match self.blocks.groups.check(self.blocks.n_carved) {
            Ok(n_listed) if n_listed == self.count().n_free => Ok(()),
            Ok(_) => Err(Error::Damaged { block: self.blocks.grid.address(0) }),
            Err(index) => Err(Error::Damaged { block: self.blocks.grid.address(index) }),
        }
    }
}

#[cfg(target_has_atomic = "64")]
impl<F> SharedPool<'_, F> {
    /// Checks that every block is either in use or in a list, once. The exclusive borrow guarantees that no magazine is in use; the blocks in one that was
    /// forgotten ([`core::mem::forget`]) are in no list, so the pool is reported as damaged then.
    ///
    /// ```
    /// # use freestone_pool::{SharedPool, Shape};
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 8192]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 8192]);
    /// # let shape = Shape::new(64, 16)?;
    /// let mut pool = SharedPool::new(shape, &mut memory.0)?;
    /// let mut magazine = pool.magazine();
    /// magazine.allocate()?;
    /// drop(magazine);
    /// assert_eq!(pool.check(), Ok(()));
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`], with the block whose link is wrong, or the first block if blocks are missing from the lists.
    pub fn check(&mut self) -> Result<(), Error> {
        let n_free = self.count().n_free;
        match self.links.check() {
            Ok(n_listed) if n_listed == n_free => Ok(()),
            Ok(_) => Err(Error::Damaged { block: self.grid.address(0) }),
            Err(index) => Err(Error::Damaged { block: self.grid.address(index as usize) }),
        }
    }
}
