//! A heap over memory of its own, as a subject of the shared streams.
#![allow(unsafe_code, dead_code, reason = "each test binary uses its part of this")]

use freestone_testkit::ops::Subject;
use freestone_tlsf::{Error, Policy, Standard, Tlsf};
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

/// Memory aligned to 4096, filled with a byte that is not 0.
pub(crate) struct Memory {
    pub(crate) start: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    pub(crate) fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, 4096).unwrap();
        // SAFETY: the layout has bytes.
        let start = NonNull::new(unsafe { alloc(layout) }).unwrap();
        // SAFETY: just allocated.
        unsafe { start.write_bytes(0xA5, bytes) };
        Self { start, layout }
    }

    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset <= self.layout.size());
        // SAFETY: inside, or one past the end.
        unsafe { self.start.byte_add(offset) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// A heap on the first bytes of its memory; the rest is for growing.
pub(crate) struct Grown<
    P: Policy = Standard,
    const FIRST: usize = 35,
    const SECOND: usize = 32,
    const REGIONS: usize = 4,
> {
    pub(crate) heap: Tlsf<'static, P, FIRST, SECOND, REGIONS>,
    pub(crate) region_bytes: usize,
    /// Dropped after the heap.
    pub(crate) memory: Memory,
}

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Grown<P, FIRST, SECOND, REGIONS> {
    pub(crate) fn new(region_bytes: usize, most_bytes: usize) -> Self {
        let memory = Memory::new(most_bytes);
        let mut heap = Tlsf::with_policy();
        // SAFETY: the memory is this struct's, and lives as long as the heap.
        unsafe { heap.add_region_at(memory.start, region_bytes).unwrap() };
        Self { heap, region_bytes, memory }
    }

    /// Rounding and a rest that could not be a block, or a block that is a little longer and was not cut.
    unsafe fn assert_hardly_longer(&self, block: NonNull<u8>, bytes: usize) {
        // SAFETY: this function's contract is the same.
        let usable = unsafe { self.heap.usable_size(block).unwrap() };
        let most = if P::FOOTER { 0 } else { (bytes * 5 / 32).clamp(16, 512) + 31 };
        assert!((bytes..=bytes + most).contains(&usable), "{usable} bytes where {bytes} were requested");
    }

    /// The same memory as `regions` regions of equal length.
    pub(crate) fn in_regions(regions: usize, region_bytes: usize) -> Self {
        let memory = Memory::new(regions * region_bytes);
        let mut heap = Tlsf::with_policy();
        for region in 0..regions {
            // SAFETY: as above.
            unsafe { heap.add_region_at(memory.at(region * region_bytes), region_bytes).unwrap() };
        }
        Self { heap, region_bytes: 0, memory }
    }
}

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Subject
    for Grown<P, FIRST, SECOND, REGIONS>
{
    type Error = Error;

    fn allocate(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let block = self.heap.allocate(bytes, align)?;
        // SAFETY: just allocated.
        unsafe { self.assert_hardly_longer(block, bytes) };
        Ok(block)
    }

    unsafe fn reallocate(
        &mut self,
        block: NonNull<u8>,
        _: usize,
        align: usize,
        bytes: usize,
    ) -> Result<NonNull<u8>, Error> {
        // SAFETY: this function's contract is the same.
        let block = unsafe { self.heap.reallocate(block, bytes, align) }?;
        // SAFETY: as above.
        unsafe { self.assert_hardly_longer(block, bytes) };
        Ok(block)
    }

    unsafe fn deallocate(&mut self, block: NonNull<u8>, bytes: usize, _: usize) -> Result<(), Error> {
        // SAFETY: this function's contract is the same.
        assert!(unsafe { self.heap.usable_size(block) }? >= bytes);
        // SAFETY: as above.
        unsafe { self.heap.deallocate(block) }
    }

    fn grow(&mut self, bytes: usize) {
        if self.region_bytes == 0 || self.region_bytes + bytes > self.memory.layout.size() {
            return;
        }
        // SAFETY: the memory behind the region is this struct's.
        if unsafe { self.heap.grow_region(self.memory.start, bytes) }.is_ok() {
            self.region_bytes += bytes;
        }
    }

    fn check(&self) -> Result<(), String> {
        self.heap.check().map_err(|error| error.to_string())?;
        let stats = self.heap.stats();
        if stats.used_bytes + stats.free_bytes + stats.overhead_bytes != stats.region_bytes {
            return Err(format!("the bytes do not add up: {stats:?}"));
        }
        Ok(())
    }
}
