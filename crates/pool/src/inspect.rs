//! What a pool holds, and whether it is whole: counted and walked when asked.
//!
//! Nothing is counted while allocating: a counter would cost every call, and a walk is always right. Cost: linear in the blocks that
//! were ever in use. Of a shared pool at work the answers are those of slightly different moments, but for [`SharedPool::check`], whose
//! exclusive borrow says that nobody is at work.
//!
//! # Safety
//! Only blocks below the frontier are looked at.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::fixed::FixedPool;
use crate::grid::Grid;
use crate::shape::Shape;
use crate::shared::SharedPool;
use core::ptr::NonNull;

/// What a pool holds. `n_used + n_free + n_fresh` is the count of its shape; `n_used + n_free` is the most that were ever in use at once
/// (in a shared pool, in use or kept by magazines).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Blocks in use.
    pub n_used: usize,
    /// Blocks that were in use once and can be handed out again.
    pub n_free: usize,
    /// Blocks that were never in use: their memory has not been touched.
    pub n_fresh: usize,
    /// Bytes of a block that may be used.
    pub block_bytes: usize,
    /// Bytes from one block to the next.
    pub spacing_bytes: usize,
}

/// The questions both kinds of pool are asked, in terms of what differs.
trait Inspect {
    fn grid(&self) -> &Grid;
    /// The frontier.
    fn n_carved(&self) -> usize;
    /// Whether the block with an index, any number, is in use.
    fn is_used(&self, index: usize) -> bool;

    fn usable_size_of(&self, block: NonNull<u8>) -> Result<usize, Error> {
        let address = block.addr().get();
        if self.is_used(self.grid().index_of(address)) {
            return Ok(self.grid().shape.block_bytes());
        }
        Err(self.grid().diagnose(address, self.n_carved()))
    }

    fn used(&self) -> impl Iterator<Item = NonNull<u8>> {
        // SAFETY: the indices are below the frontier.
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
        &self.grid
    }
    fn n_carved(&self) -> usize {
        self.n_carved
    }
    fn is_used(&self, index: usize) -> bool {
        // SAFETY: below the frontier every group was begun.
        index < self.n_carved && !unsafe { self.groups.is_free(index) }
    }
}

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

macro_rules! questions {
    ($pool:ident) => {
        impl<F> $pool<'_, F> {
            /// The pool's shape.
            #[must_use]
            pub fn shape(&self) -> Shape {
                self.grid.shape
            }

            /// Whether an address lies in the pool's blocks; if not, a block may be the fallback's.
            #[inline]
            #[must_use]
            pub fn contains(&self, block: NonNull<u8>) -> bool {
                self.grid.contains(block.addr().get())
            }

            /// Bytes of a block in use that may be used.
            ///
            /// # Errors
            /// As of `deallocate`; a block of the fallback is foreign here.
            pub fn usable_size(&self, block: NonNull<u8>) -> Result<usize, Error> {
                self.usable_size_of(block)
            }

            /// The blocks in use, in the order of their addresses.
            pub fn leaks(&self) -> impl Iterator<Item = NonNull<u8>> {
                self.used()
            }

            /// Counts the blocks. Linear in the blocks that were ever in use.
            #[must_use]
            pub fn stats(&self) -> Stats {
                self.count()
            }

            /// Whether every block was given back.
            ///
            /// # Errors
            /// Some was not: [`Error::InUse`] with the first and their number.
            pub fn check_idle(&self) -> Result<(), Error> {
                self.idle()
            }

            /// Ends the pool: its memory is the lender's again. (Dropping a pool asks nothing.)
            ///
            /// # Errors
            /// A block is still in use. The pool comes back with the error, as it was.
            pub fn close(self) -> Result<(), (Self, Error)> {
                match self.idle() {
                    Ok(()) => Ok(()),
                    Err(error) => Err((self, error)),
                }
            }
        }
    };
}

questions!(FixedPool);
questions!(SharedPool);

impl<F> FixedPool<'_, F> {
    /// Checks every invariant of the pool. Linear in the blocks that were ever in use.
    ///
    /// # Errors
    /// [`Error::Damaged`], naming the first of 64 blocks whose bookkeeping is wrong.
    pub fn check(&self) -> Result<(), Error> {
        // SAFETY: below the frontier every group was begun, and no other.
        match unsafe { self.groups.check(self.n_carved) } {
            Ok(n_listed) if n_listed == self.count().n_free => Ok(()),
            Ok(_) => Err(Error::Damaged { block: self.grid.address(0) }),
            Err(index) => Err(Error::Damaged { block: self.grid.address(index) }),
        }
    }
}

impl<F> SharedPool<'_, F> {
    /// Checks that every block is in use or on the list, once. The exclusive borrow says that no magazine is out.
    ///
    /// # Errors
    /// [`Error::Damaged`], naming the block whose link is wrong.
    pub fn check(&mut self) -> Result<(), Error> {
        let n_free = self.count().n_free;
        match self.links.check() {
            Ok(n_listed) if n_listed == n_free => Ok(()),
            Ok(_) => Err(Error::Damaged { block: self.grid.address(0) }),
            Err(index) => Err(Error::Damaged { block: self.grid.address(index as usize) }),
        }
    }
}
