//! The measured heaps, behind one interface that the compiler inlines.

use freestone_tlsf::{Standard, Tlsf, WithFooters};
use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// A heap over one region, for blocks aligned to 16.
pub(crate) trait Heap {
    /// Its name in tables.
    const NAME: &'static str;
    fn over(region: &'static mut [MaybeUninit<u8>]) -> Self;
    /// A block, or none if the heap is full.
    fn try_allocate(&mut self, bytes: usize) -> Option<NonNull<u8>>;
    fn allocate(&mut self, bytes: usize) -> NonNull<u8> {
        self.try_allocate(bytes).expect("the region is large enough for the workload")
    }
    /// Takes back a block of this heap.
    fn deallocate(&mut self, block: NonNull<u8>, bytes: usize);
}

/// Memory for one heap, aligned to 2 MiB and touched: on huge pages where the kernel has them, so that one process's figures do not differ
/// from another's because its pages lie elsewhere in the processor's caches.
pub(crate) fn region(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    let layout = Layout::from_size_align(bytes, 2 << 20).expect("a valid layout");
    // SAFETY: the layout has bytes; the memory is never given back.
    let start = NonNull::new(unsafe { std::alloc::alloc(layout) }).expect("memory for a region");
    #[cfg(target_os = "linux")]
    // SAFETY: advice changes no contents.
    unsafe {
        libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE)
    };
    // SAFETY: the memory has `bytes`, and no other code has its address.
    unsafe { start.write_bytes(1, bytes) };
    // SAFETY: as above; the memory is never given back.
    unsafe { std::slice::from_raw_parts_mut(start.cast().as_ptr(), bytes) }
}

fn layout(bytes: usize) -> Layout {
    // SAFETY: 16 is a power of two and the sizes here are small.
    unsafe { Layout::from_size_align_unchecked(bytes, 16) }
}

pub(crate) struct Freestone(Tlsf<'static, Standard>);
pub(crate) struct Unchecked(Tlsf<'static, Standard>);
pub(crate) struct Footered(Tlsf<'static, WithFooters>);
pub(crate) struct Rlsf(rlsf::Tlsf<'static, u32, u32, 28, 32>);
pub(crate) struct Talc(talc::base::Talc<talc::source::Manual, talc::base::binning::DefaultBinning>);

impl Heap for Freestone {
    const NAME: &'static str = "freestone";
    fn over(region: &'static mut [MaybeUninit<u8>]) -> Self {
        let mut heap = Tlsf::with_policy();
        heap.add_region(region).expect("a valid region");
        Self(heap)
    }
    fn try_allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        self.0.allocate(bytes, 16).ok()
    }
    fn deallocate(&mut self, block: NonNull<u8>, _: usize) {
        // SAFETY: a block of this heap.
        unsafe { self.0.deallocate(block) }.expect("a block of this heap");
    }
}

impl Heap for Unchecked {
    const NAME: &'static str = "freestone-unchecked";
    fn over(region: &'static mut [MaybeUninit<u8>]) -> Self {
        Self(Freestone::over(region).0)
    }
    fn try_allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        self.0.allocate(bytes, 16).ok()
    }
    fn deallocate(&mut self, block: NonNull<u8>, _: usize) {
        // SAFETY: a block of this heap, through its own pointer.
        unsafe { self.0.deallocate_unchecked(block) };
    }
}

impl Heap for Footered {
    const NAME: &'static str = "freestone-with-footers";
    fn over(region: &'static mut [MaybeUninit<u8>]) -> Self {
        let mut heap = Tlsf::with_policy();
        heap.add_region(region).expect("a valid region");
        Self(heap)
    }
    fn try_allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        self.0.allocate(bytes, 16).ok()
    }
    fn deallocate(&mut self, block: NonNull<u8>, _: usize) {
        // SAFETY: a block of this heap.
        unsafe { self.0.deallocate(block) }.expect("a block of this heap");
    }
}

impl Heap for Rlsf {
    const NAME: &'static str = "rlsf";
    fn over(region: &'static mut [MaybeUninit<u8>]) -> Self {
        let mut heap = rlsf::Tlsf::new();
        heap.insert_free_block(region);
        Self(heap)
    }
    fn try_allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        self.0.allocate(layout(bytes))
    }
    fn deallocate(&mut self, block: NonNull<u8>, _: usize) {
        // SAFETY: a block of this heap, with the alignment that it was requested with.
        unsafe { self.0.deallocate(block, 16) };
    }
}

impl Heap for Talc {
    const NAME: &'static str = "talc";
    fn over(region: &'static mut [MaybeUninit<u8>]) -> Self {
        let mut heap = talc::base::Talc::new(talc::source::Manual);
        let bytes = region.len();
        // SAFETY: the region is this heap's alone.
        unsafe { heap.claim(region.as_mut_ptr().cast(), bytes) }.expect("a valid region");
        Self(heap)
    }
    fn try_allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the layout has bytes.
        unsafe { self.0.allocate(layout(bytes)) }
    }
    fn deallocate(&mut self, block: NonNull<u8>, bytes: usize) {
        // SAFETY: a block of this heap, with its layout.
        unsafe { self.0.deallocate(block.as_ptr(), layout(bytes)) };
    }
}
