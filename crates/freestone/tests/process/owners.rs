//! Which heap a block is of.

use crate::alone;
use freestone::Heap;
use freestone::door::{self, Owner};
use freestone::options::Harden;
use std::alloc::Layout;
use std::ptr::{self, NonNull};
use std::thread;

/// Addresses at which blocks of many sizes start, and some inside them. Half of the blocks are freed.
fn addresses(allocate: impl Fn(Layout) -> *mut u8, free: impl Fn(*mut u8)) -> Vec<usize> {
    let mut addresses = Vec::new();
    for (size, align) in
        [0, 1, 24, 100, 1000, 5000, 30_000, 40_000, 100_000].into_iter().zip([1, 4096].into_iter().cycle())
    {
        let blocks = [(); 2].map(|()| allocate(Layout::from_size_align(size, align).unwrap()));
        let places = [0, 1, 8, 16, 4096, 70_000];
        addresses.extend(blocks.iter().flat_map(|block| places.map(|offset| block.addr() + offset)));
        free(blocks[0]);
    }
    addresses
}

/// As [`addresses`], of blocks of the process, some of which are guarded. The last one is: below `harden=checks`, guarded blocks alone have no more bytes than were asked for.
fn addresses_of_process() -> Vec<usize> {
    // SAFETY: the alignment of a layout is a power of two.
    let allocate = |layout: Layout| unsafe { door::allocate_aligned(layout.size(), layout.align()) };
    // SAFETY: the block is live, and not used again.
    let free = |block| unsafe { door::free(block) };
    let mut addresses: Vec<_> = (0..10).flat_map(|_| addresses(allocate, free)).collect();
    let guarded = (0..10_000).map(|_| door::allocate(1001)).find(|&block| {
        // SAFETY: the block is live.
        unsafe { door::usable_size(block) == 1001 }
    });
    addresses.push(guarded.expect("a guarded block").addr());
    addresses
}

/// Compares the answer of each heap, of all addresses, with the heap that is found among all of them.
fn compare_with_search(n_threads: usize) {
    let levels = [Harden::Off, Harden::Default, Harden::Checks, Harden::Full];
    // SAFETY: their blocks are freed by `deallocate`, and not used after they are dropped.
    let heaps: Vec<_> = (0..12).map(|n| unsafe { Heap::hardened(levels[n % 4]) }.unwrap()).collect();
    let handle = |n: usize| ptr::without_provenance_mut::<()>(16 * (n + 1));
    (0..).zip(&heaps).for_each(|(n, heap)| door::set_handle(heap, handle(n)));
    let addresses_of = |heap: &Heap| {
        let allocate = |layout| heap.allocate(layout).unwrap().as_ptr();
        // SAFETY: the block is live, and not used again.
        addresses(allocate, |block| unsafe { heap.deallocate(NonNull::new(block).unwrap()) })
    };
    let all = || heaps.iter().flat_map(addresses_of).chain(addresses_of_process()).collect::<Vec<_>>();
    let asked = thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(all)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let mut n_own = 0;
    for address in asked.into_iter().chain([0, 16, usize::MAX, (&raw const heaps).addr()]) {
        let block = ptr::without_provenance(address);
        let found = door::owner(block);
        for (n, heap) in heaps.iter().enumerate() {
            assert_eq!(door::is_of(heap, block), found == Owner::Heap(handle(n)), "{address:#x} and heap {n}");
            n_own += usize::from(door::is_of(heap, block));
        }
    }
    assert!(n_own >= 300 * n_threads);
}

#[test]
fn a_heap_knows_its_blocks_as_the_search_through_all_heaps_does() {
    alone(&[("GUARD_SAMPLE", "10")], || compare_with_search(3));
}

#[test]
fn so_it_does_where_the_process_is_hardened_and_the_heap_profile_samples_blocks() {
    let options = [("GUARD_SAMPLE", "10"), ("HARDEN", "full"), ("HEAP_PROFILE", "on"), ("HEAP_PROFILE_INTERVAL", "1k")];
    alone(&options, || compare_with_search(1));
}
