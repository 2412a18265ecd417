//! The functions that the `calloc` workloads call: the C symbols, or a pool in front of them.
//!
//! Each pool has room for all blocks of the one size that the workload uses. Requests that are larger, or that come when all blocks are in
//! use, go on to `calloc`. All front ends return zeroed memory, as `calloc` does.
//!
//! # Safety
//! A block goes back once to the front end that allocated it: [`Block`] is consumed, and a workload has one front end.
#![allow(unsafe_code)]

use crate::workload::failure::broken;
use crate::workload::linear_pool::LinearPool;
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use freestone_pool::{Error, FixedPool, HeapFallback, Magazine, Shape, SharedPool};
use std::alloc::{Layout, System, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// A pool over Rust's system heap, which calls the preloaded `malloc`, `calloc` and `free`.
type Fixed = FixedPool<'static, HeapFallback<System>>;
/// The lock-free pool over the same heap.
type Shared = SharedPool<'static, HeapFallback<System>>;

/// Help text of the `front` parameter.
pub(crate) const HELP: &str = "0: calloc; in front of it, 1: experiment D's linear pool; 2: Freestone's pool; 3: that behind a lock; 4: the shared pool";

/// Blocks are aligned to OS pages, so that all pools are equal in that.
const REGION_ALIGN: usize = 4096;

/// What a workload calls instead of `calloc` and `free`.
pub(crate) enum CallocFrontEnd {
    /// `calloc` and `free`.
    Calloc,
    /// Experiment D's pool with a linear search.
    Linear(LinearPool),
    /// Freestone's pool for one thread.
    Fixed(Shape, Fixed),
    /// The same pool behind a lock.
    Locked(Shape, &'static Mutex<Fixed>),
    /// Freestone's lock-free pool, through this thread's magazine.
    Shared(Shape, Magazine<'static, 'static, HeapFallback<System>>),
}

impl CallocFrontEnd {
    /// The front end with the number `kind`, with a pool of `len` blocks of `size` bytes.
    pub(crate) fn new(kind: u64, len: usize, size: usize) -> Self {
        match kind {
            0 => Self::Calloc,
            1 => Self::Linear(LinearPool::new(len, size)),
            2..=4 => Self::pool(kind, len, size)
                .unwrap_or_else(|error| broken(&format!("a pool of {len} blocks of {size} bytes: {error}"))),
            _ => broken(&format!("front={kind} is not one of {HELP}")),
        }
    }

    fn pool(kind: u64, len: usize, size: usize) -> Result<Self, Error> {
        let shape = Shape::new(size, len)?;
        let (region, bytes) = zeroed_region(shape)?;
        if kind == 4 {
            // SAFETY: the region has `bytes` zero bytes, belongs to this pool alone, and is never freed.
            let pool = unsafe { SharedPool::new_zeroed_at(shape, region, bytes) }?.with_fallback(HeapFallback(System));
            let pool: &'static Shared = Box::leak(Box::new(pool));
            return Ok(Self::Shared(shape, pool.magazine()));
        }
        // SAFETY: as above.
        let pool = unsafe { FixedPool::new_zeroed_at(shape, region, bytes) }?.with_fallback(HeapFallback(System));
        Ok(if kind == 2 {
            Self::Fixed(shape, pool)
        } else {
            Self::Locked(shape, Box::leak(Box::new(Mutex::new(pool))))
        })
    }

    /// Allocates `size` bytes of zeroes.
    #[inline]
    pub(crate) fn allocate_zeroed(&mut self, size: usize) -> Block {
        let taken = match self {
            Self::Fixed(shape, pool) if size <= shape.block_bytes() => pool.allocate_zeroed(),
            Self::Locked(shape, pool) if size <= shape.block_bytes() => {
                pool.lock().unwrap_or_else(PoisonError::into_inner).allocate_zeroed()
            }
            Self::Shared(shape, magazine) if size <= shape.block_bytes() => magazine.allocate_zeroed(),
            Self::Linear(pool) => return pool.allocate_zeroed(size),
            Self::Calloc | Self::Fixed(..) | Self::Locked(..) | Self::Shared(..) => {
                return CHeap.allocate_zeroed(size);
            }
        };
        match taken {
            // SAFETY: the pool just handed out the block for this value alone, and its blocks have at least `size` bytes.
            Ok(address) => unsafe { Block::adopt(address, size) },
            Err(error) => broken(&error.to_string()),
        }
    }

    /// Frees a block.
    #[inline]
    pub(crate) fn release(&mut self, block: Block) {
        let address = block.start();
        let released = match self {
            Self::Calloc => return CHeap.release(block),
            Self::Linear(pool) => return pool.release(block),
            // SAFETY: the pool or the heap behind it allocated the block, and the block is consumed here, so it is freed once.
            Self::Fixed(_, pool) => unsafe { pool.deallocate(address) },
            Self::Locked(_, pool) => {
                let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
                // SAFETY: as above.
                unsafe { pool.deallocate(address) }
            }
            // SAFETY: as above.
            Self::Shared(_, magazine) => unsafe { magazine.deallocate(address) },
        };
        if let Err(error) = released {
            broken(&error.to_string());
        }
    }
}

/// A region of zeroes for a pool of `shape`, and its length; it is never freed.
fn zeroed_region(shape: Shape) -> Result<(NonNull<u8>, usize), Error> {
    let bytes = shape.region_bytes().max(shape.shared_region_bytes());
    let (block_bytes, count) = (shape.block_bytes(), shape.count());
    let Ok(layout) = Layout::from_size_align(bytes, REGION_ALIGN) else {
        return Err(Error::TooLarge { block_bytes, count });
    };
    // SAFETY: the layout has bytes, because a shape has at least one block.
    let region = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(Error::Exhausted { count, block_bytes })?;
    Ok((region, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_front_end_hands_out_zeroes_also_when_its_pool_is_empty_or_too_small() {
        for kind in 0..=4 {
            let mut front_end = CallocFrontEnd::new(kind, 4, 64);
            for _ in 0..3 {
                let blocks: Vec<Block> = [64, 64, 64, 64, 64, 128].map(|size| front_end.allocate_zeroed(size)).into();
                for block in &blocks {
                    assert_eq!(block.sum(), 0, "front={kind}");
                    block.fill_from(0, 7);
                }
                blocks.into_iter().for_each(|block| front_end.release(block));
            }
        }
    }
}
