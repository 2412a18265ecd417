//! What the `calloc` workloads ask: the C symbols, or a pool in front of them.
//!
//! Every pool has room for all blocks of one size that the workload says; larger requests, and those that come when all are in use, go on
//! to `calloc`. All clear the memory they hand out, as `calloc` does.
//!
//! # Safety
//! A block is given back once, to the front it came from: [`Block`] is consumed, and a workload has one front.
#![allow(unsafe_code)]

use super::heap::{Block, CHeap, Heap, broken};
use super::linear_pool::LinearPool;
use freestone_pool::{Error, FixedPool, HeapFallback, Magazine, Shape, SharedPool};
use std::alloc::{Layout, System, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// The system's heap as Rust calls it is `malloc`, `calloc` and `free`: whatever the loader put there answers.
type Fixed = FixedPool<'static, HeapFallback<System>>;
type Shared = SharedPool<'static, HeapFallback<System>>;

/// What the `front` parameter may be, for its help.
pub(crate) const HELP: &str = "0: calloc; in front of it, 1: experiment D's linear pool; 2: Freestone's pool; 3: that behind a lock; 4: the shared pool";

/// Blocks are aligned as pages are, so that all pools fare alike.
const REGION_ALIGN: usize = 4096;

/// Who is asked first.
pub(crate) enum Front {
    /// `calloc` and `free`.
    Calloc,
    /// A linear pool.
    Linear(LinearPool),
    /// A pool of one thread.
    Fixed(Shape, Fixed),
    /// The same behind a lock.
    Locked(Shape, &'static Mutex<Fixed>),
    /// A lock-free pool, through this thread's magazine.
    Shared(Shape, Magazine<'static, 'static, HeapFallback<System>>),
}

impl Front {
    /// The front that the `front` parameter names, with a pool of `len` blocks of `size` bytes.
    pub(crate) fn new(front: u64, len: usize, size: usize) -> Self {
        match front {
            0 => Self::Calloc,
            1 => Self::Linear(LinearPool::new(len, size)),
            2..=4 => Self::pool(front, len, size)
                .unwrap_or_else(|error| broken(&format!("a pool of {len} blocks of {size} bytes: {error}"))),
            _ => broken(&format!("front={front} is not one of {HELP}")),
        }
    }

    fn pool(front: u64, len: usize, size: usize) -> Result<Self, Error> {
        let shape = Shape::new(size, len)?;
        let bytes = shape.region_bytes().max(shape.shared_region_bytes());
        let Ok(layout) = Layout::from_size_align(bytes, REGION_ALIGN) else {
            return Err(Error::TooLarge { block_bytes: size, count: len });
        };
        // SAFETY: a shape has bytes.
        let Some(region) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            return Err(Error::Exhausted { count: len, block_bytes: size });
        };
        // SAFETY: the region is zero, and never given back.
        unsafe {
            if front == 4 {
                let pool = SharedPool::new_zeroed_at(shape, region, bytes)?.with_fallback(HeapFallback(System));
                let pool: &'static Shared = Box::leak(Box::new(pool));
                return Ok(Self::Shared(shape, pool.magazine()));
            }
            let pool = FixedPool::new_zeroed_at(shape, region, bytes)?.with_fallback(HeapFallback(System));
            Ok(if front == 2 {
                Self::Fixed(shape, pool)
            } else {
                Self::Locked(shape, Box::leak(Box::new(Mutex::new(pool))))
            })
        }
    }

    /// A zeroed block.
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
            // SAFETY: the pool handed the block out, and it is that long.
            Ok(address) => unsafe { Block::adopt(address, size) },
            Err(error) => broken(&error.to_string()),
        }
    }

    /// Gives a block back.
    #[inline]
    pub(crate) fn release(&mut self, block: Block) {
        let address = block.start();
        // SAFETY: the block is consumed here, and came from the pool or from the heap behind it.
        let released = unsafe {
            match self {
                Self::Calloc => return CHeap.release(block),
                Self::Linear(pool) => return pool.release(block),
                Self::Fixed(_, pool) => pool.deallocate(address),
                Self::Locked(_, pool) => pool.lock().unwrap_or_else(PoisonError::into_inner).deallocate(address),
                Self::Shared(_, magazine) => magazine.deallocate(address),
            }
        };
        if let Err(error) = released {
            broken(&error.to_string());
        }
    }
}
