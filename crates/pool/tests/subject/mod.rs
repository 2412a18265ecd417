//! Pools over memory of their own, as subjects of the shared streams.
#![allow(unsafe_code, dead_code, reason = "each test binary uses its part of this")]

use freestone_pool::{Error, FixedPool, Magazine, Shape, SharedPool};
use freestone_testkit::ops::Subject;
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

/// Memory aligned to 4096, filled with a byte.
pub(crate) struct Memory {
    pub(crate) start: NonNull<u8>,
    pub(crate) layout: Layout,
}

impl Memory {
    pub(crate) fn new(bytes: usize, filling: u8) -> Self {
        let layout = Layout::from_size_align(bytes, 4096).unwrap();
        // SAFETY: the layout has bytes.
        let start = NonNull::new(unsafe { alloc(layout) }).unwrap();
        // SAFETY: just allocated.
        unsafe { start.write_bytes(filling, bytes) };
        Self { start, layout }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.layout.size()
    }

    pub(crate) fn fixed(&self, shape: Shape) -> FixedPool<'_> {
        // SAFETY: the borrow keeps the memory, and each test makes one pool of it.
        unsafe { FixedPool::new_at(shape, self.start, self.bytes()) }.unwrap()
    }

    pub(crate) fn shared(&self, shape: Shape) -> SharedPool<'_> {
        // SAFETY: as above.
        unsafe { SharedPool::new_at(shape, self.start, self.bytes()) }.unwrap()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// What the streams need of a pool.
pub(crate) trait Blocks {
    fn shape(&self) -> Shape;
    fn take(&mut self, zeroed: bool) -> Result<NonNull<u8>, Error>;
    unsafe fn give(&mut self, block: NonNull<u8>) -> Result<(), Error>;
    fn check(&self) -> Result<(), Error>;
}

impl Blocks for FixedPool<'_> {
    fn shape(&self) -> Shape {
        self.shape()
    }
    fn take(&mut self, zeroed: bool) -> Result<NonNull<u8>, Error> {
        if zeroed { self.allocate_zeroed() } else { self.allocate() }
    }
    unsafe fn give(&mut self, block: NonNull<u8>) -> Result<(), Error> {
        // SAFETY: this function's contract is the same.
        unsafe { self.deallocate(block) }
    }
    fn check(&self) -> Result<(), Error> {
        self.check()
    }
}

/// A shared pool through two magazines in turn, and now and then without.
pub(crate) struct Magazines<'p> {
    pub(crate) pool: &'p SharedPool<'p>,
    magazines: [Magazine<'p, 'p, freestone_pool::NoFallback, 4>; 2],
    turn: usize,
}

impl<'p> Magazines<'p> {
    pub(crate) fn new(pool: &'p SharedPool<'p>) -> Self {
        Self { pool, magazines: [Magazine::new(pool), Magazine::new(pool)], turn: 0 }
    }
}

impl Blocks for Magazines<'_> {
    fn shape(&self) -> Shape {
        self.pool.shape()
    }
    fn take(&mut self, zeroed: bool) -> Result<NonNull<u8>, Error> {
        self.turn += 1;
        match (self.magazines.get_mut(self.turn % 3), zeroed) {
            (Some(magazine), true) => magazine.allocate_zeroed(),
            (Some(magazine), false) => magazine.allocate(),
            (None, true) => self.pool.allocate_zeroed(),
            (None, false) => self.pool.allocate(),
        }
    }
    unsafe fn give(&mut self, block: NonNull<u8>) -> Result<(), Error> {
        self.turn += 1;
        match self.magazines.get_mut(self.turn % 3) {
            // SAFETY: this function's contract is the same.
            Some(magazine) => unsafe { magazine.deallocate(block) },
            // SAFETY: as above.
            None => unsafe { self.pool.deallocate(block) },
        }
    }
    fn check(&self) -> Result<(), Error> {
        let stats = self.pool.stats();
        assert_eq!(stats.n_used + stats.n_free + stats.n_fresh, self.shape().count());
        Ok(())
    }
}

/// A pool as an allocator: what does not fit in a block is refused. Every second block is requested zeroed.
pub(crate) struct AsHeap<B> {
    pub(crate) pool: B,
    n_live: usize,
    n_requests: usize,
}

impl<B: Blocks> AsHeap<B> {
    pub(crate) fn new(pool: B) -> Self {
        Self { pool, n_live: 0, n_requests: 0 }
    }

    fn fits(&self, bytes: usize, align: usize) -> Result<(), Error> {
        let shape = self.pool.shape();
        if bytes <= shape.block_bytes() && align <= shape.align() { Ok(()) } else { Err(Error::BadAlignment { align }) }
    }
}

impl<B: Blocks> Subject for AsHeap<B> {
    type Error = Error;

    fn allocate(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        self.fits(bytes, align)?;
        self.n_requests += 1;
        let zeroed = self.n_requests.is_multiple_of(2);
        let block = self.pool.take(zeroed)?;
        if zeroed {
            // SAFETY: the block was just handed out, and is that long.
            let contents = unsafe { std::slice::from_raw_parts(block.as_ptr(), self.pool.shape().block_bytes()) };
            assert!(contents.iter().all(|&byte| byte == 0), "a zeroed block that is not");
        }
        self.n_live += 1;
        Ok(block)
    }

    unsafe fn reallocate(
        &mut self,
        block: NonNull<u8>,
        _: usize,
        align: usize,
        bytes: usize,
    ) -> Result<NonNull<u8>, Error> {
        self.fits(bytes, align).map(|()| block)
    }

    unsafe fn deallocate(&mut self, block: NonNull<u8>, _: usize, _: usize) -> Result<(), Error> {
        // SAFETY: this function's contract is the same.
        unsafe { self.pool.give(block)? };
        self.n_live -= 1;
        // SAFETY: refused, so nothing happens to the block.
        let again = unsafe { self.pool.give(block) };
        assert_eq!(again, Err(Error::DoubleFree { block: block.addr().get(), bytes: self.pool.shape().block_bytes() }));
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.pool.check().map_err(|error| error.to_string())
    }
}
