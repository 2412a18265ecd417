//! Explicit heaps in a Rust program whose global allocator is the same: blocks freed by other threads, and heaps dropped right after.
#![allow(unsafe_code)]

use freestone::door::{Owner, owner, set_handle};
use freestone::options::{Harden, Mistake};
use freestone::{Freestone, Heap, HeapKind};
use std::alloc::Layout;
use std::ptr::{self, NonNull};
use std::sync::mpsc;
use std::thread;

#[global_allocator]
static ALLOCATOR: Freestone = Freestone;

/// A block that is sent to the thread that frees it.
struct Passed(NonNull<u8>);

// SAFETY: the receiver is the only one who uses the block from then on.
unsafe impl Send for Passed {}

const LAYOUT: Layout = Layout::new::<[u64; 6]>();

#[test]
fn a_heap_may_be_dropped_as_soon_as_other_threads_have_freed_its_blocks() {
    // SAFETY: no block of this heap is allocated: it only frees.
    let freeing = unsafe { Heap::new() }.unwrap();
    let mut kept = Vec::new();
    for round in 0u64..100 {
        // SAFETY: its blocks are freed by `deallocate`, which has returned when the threads below are joined, or are never used again.
        let heap = unsafe { Heap::new() }.unwrap();
        thread::scope(|scope| {
            let (send, receive) = mpsc::channel();
            let freeing = &freeing;
            scope.spawn(move || {
                for Passed(block) in receive {
                    // SAFETY: the block is live, and a number was written to it.
                    assert_eq!(unsafe { block.cast::<u64>().read() }, round);
                    // SAFETY: the block is live, and this thread's, which does not use it again.
                    unsafe { freeing.deallocate(block) };
                }
            });
            for n in 0..500 {
                let block = heap.allocate(LAYOUT).unwrap();
                // SAFETY: the block holds six of them.
                unsafe { block.cast::<u64>().write(round) };
                if n % 3 > 0 {
                    send.send(Passed(block)).unwrap();
                }
            }
        });
        drop(heap);
        // The global allocator gets the pages.
        kept.extend((0..50).map(|n| Box::new([round * 50 + n; 6])));
    }
    assert!(kept.iter().zip(0..).all(|(block, n)| **block == [n; 6]), "a block was handed out twice");
}

/// A heap whose blocks are freed by `deallocate` or end with it.
fn heap() -> Heap {
    // SAFETY: no test below uses a block after its heap is dropped, or frees one by the global allocator.
    unsafe { Heap::new() }.unwrap()
}

#[test]
fn a_limit_counts_whole_pages_and_is_refused_below_what_the_heap_has() {
    const PAGE_BYTES: usize = 64 << 10;
    let heap = heap();
    for too_small in [0, 1, PAGE_BYTES - 1] {
        assert_eq!(heap.set_limit(Some(too_small)), Err(Mistake::OutOfRange));
    }
    assert_eq!(heap.set_limit(Some(5 * PAGE_BYTES - 1)), Ok(()));
    let of_pages = |n: usize| Layout::from_size_align(n * PAGE_BYTES, 1).unwrap();
    assert_eq!(heap.allocate(of_pages(5)), None);
    let four = heap.allocate(of_pages(4)).unwrap();
    assert_eq!((heap.allocate(of_pages(1)), heap.allocate(LAYOUT)), (None, None));
    assert_eq!(heap.set_limit(Some(3 * PAGE_BYTES)), Err(Mistake::BelowUse));
    assert_eq!(heap.set_limit(Some(6 * PAGE_BYTES)), Ok(()));
    assert!(heap.allocate(of_pages(2)).is_some() && heap.allocate(of_pages(1)).is_none());
    assert_eq!(heap.set_limit(None), Ok(()));
    assert!(heap.allocate(of_pages(50)).is_some());
    // SAFETY: the block is live, and not used again.
    unsafe { heap.deallocate(four) };
}

/// The memory that a heap has may be that of other sizes, whose blocks it keeps for the next.
#[test]
fn a_heap_at_its_limit_gives_up_the_freed_blocks_of_one_size_for_those_of_another() {
    for level in [Harden::Off, Harden::Checks] {
        // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
        let heap = unsafe { Heap::hardened(level) }.unwrap();
        heap.set_limit(Some(2 * 65_536)).unwrap();
        for size in [16, 48, 100, 480, 1000, 1900, 48] {
            let block = heap.allocate(Layout::from_size_align(size, 1).unwrap());
            let block = block.unwrap_or_else(|| panic!("{size} bytes are refused, and nothing is live"));
            // SAFETY: the block is live, and not used again.
            unsafe { heap.deallocate(block) };
        }
    }
}

#[test]
fn all_bytes_of_a_block_may_be_used() {
    let heap = heap();
    for size in [0, 1, 16, 17, 100, 5000, 32_768, 40_000, 1 << 20] {
        for align in [1, 16, 64, 4096] {
            let layout = Layout::from_size_align(size, align).unwrap();
            let bytes = Heap::block_bytes(layout);
            assert!(bytes >= size && bytes <= (size + size / 4 + 16).next_multiple_of(align), "{bytes} for {layout:?}");
            let blocks = [(); 2].map(|()| heap.allocate(layout).unwrap());
            for (block, byte) in blocks.into_iter().zip(1..) {
                assert_eq!(block.addr().get() % align, 0);
                // SAFETY: the block has as many bytes.
                unsafe { block.write_bytes(byte, bytes) };
            }
            if bytes > 0 {
                // SAFETY: the block was filled above.
                assert_eq!(unsafe { blocks[0].as_ptr().wrapping_add(bytes - 1).read() }, 1);
            }
        }
    }
}

#[test]
fn a_resized_block_has_its_new_size_at_every_level_and_is_of_the_heap_that_resized_it() {
    let sizes = [1, 17, 100, 2757, 2794, 5000, 30_000, 33_000, 200_000, 1 << 20];
    for level in [Harden::Default, Harden::Checks, Harden::Full] {
        // SAFETY: blocks are freed by `deallocate`, and not used after their heap is dropped.
        let heap = || unsafe { Heap::hardened(level) }.unwrap();
        for (size, next) in sizes.iter().flat_map(|&size| sizes.map(|next| (size, next))) {
            let (here, there, handle) = (heap(), heap(), ptr::without_provenance_mut(16));
            set_handle(&here, handle);
            let layout = Layout::from_size_align(size, 1).unwrap();
            for (n, from) in [&here, &there].into_iter().enumerate() {
                let block = from.allocate(layout).unwrap();
                // SAFETY: the block has as many bytes.
                unsafe { block.write_bytes(7, size) };
                // SAFETY: the block is live, and only the new one is used.
                let resized = unsafe { here.reallocate(block, layout, next) }.unwrap();
                let kept = size.min(next);
                // SAFETY: the block has as many bytes.
                assert!(unsafe { std::slice::from_raw_parts(resized.as_ptr(), kept) }.iter().all(|&byte| byte == 7));
                // SAFETY: as above. A canary would be found to be written over when the block is freed.
                unsafe { resized.write_bytes(n as u8, next) };
                assert_eq!(owner(resized.as_ptr()), Owner::Heap(handle), "{size} to {next}");
                // SAFETY: the block is live, and not used again.
                unsafe { here.deallocate(resized) };
            }
        }
    }
}

#[test]
fn memory_of_a_heap_goes_back_when_it_is_dropped() {
    let layout = Layout::new::<[u8; 20 << 20]>();
    for _ in 0..20 {
        let heap = heap();
        assert!(heap.allocate(layout).is_some() && (0..1000).all(|_| heap.allocate(LAYOUT).is_some()));
    }
    let live = ALLOCATOR.stats().live;
    assert!(live < 2 * layout.size() as u64, "{live} bytes of heaps that were dropped are live");
}

#[test]
fn a_size_that_is_not_possible_is_refused() {
    let heap = heap();
    let layout = Layout::from_size_align(isize::MAX as usize, 1).unwrap();
    assert_eq!(heap.allocate(layout), None);
    assert!(heap.allocate(LAYOUT).is_some());
}

/// Layouts of a small block and of a large one.
fn layouts() -> [Layout; 2] {
    [LAYOUT, Layout::from_size_align(300_000, 4096).unwrap()]
}

#[test]
fn a_heaps_statistics_are_its_own() {
    let (heap, other) = (heap(), heap());
    heap.set_limit(Some(8 << 20)).unwrap();
    // Earlier heaps of its number count too.
    let before = heap.stats();
    let blocks = layouts().map(|layout| heap.allocate(layout).unwrap());
    let _others = other.allocate(layouts()[1]).unwrap();
    let stats = heap.stats();
    assert_eq!((stats.kind, stats.limit), (HeapKind::Explicit, 8 << 20));
    assert_eq!((stats.n_allocations, stats.n_frees), (before.n_allocations + 2, before.n_frees), "{stats:?}");
    assert!(stats.live >= 300_048 && stats.live < 400_000 && stats.large >= 300_000 && stats.spans >= 1, "{stats:?}");
    assert!(stats.number > 0 && stats.number != other.stats().number);
    for block in blocks {
        // SAFETY: the block is live, and not used again.
        unsafe { heap.deallocate(block) };
    }
    let after = heap.stats();
    assert_eq!((after.live, after.large), (0, 0), "{after:?}");
}

#[test]
fn the_owner_of_a_block_is_its_heap_by_the_heaps_handle() {
    let (first, second, plain) = (heap(), heap(), heap());
    let handles = [1_u8, 2].map(|mut handle| (&raw mut handle).cast::<()>().wrapping_byte_add(usize::from(handle)));
    set_handle(&first, handles[0]);
    set_handle(&second, handles[1]);
    for layout in layouts() {
        for (heap, handle) in [(&first, Some(handles[0])), (&second, Some(handles[1])), (&plain, None)] {
            let block = heap.allocate(layout).unwrap();
            // A heap without a handle is not told from the process's.
            assert_eq!(owner(block.as_ptr()), handle.map_or(Owner::Process, Owner::Heap), "{layout:?}");
        }
        let block = vec![1_u8; layout.size()];
        assert_eq!(owner(block.as_ptr()), Owner::Process, "{layout:?}");
    }
    let foreign = 0_u8;
    assert_eq!(owner(&raw const foreign), Owner::Nobody);
}
