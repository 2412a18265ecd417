#![allow(unsafe_code)]
use crate::api::alloc::allocate;
use crate::api::explicit_heap::Heap;
use crate::api::free;
use crate::api::process::PROCESS;
use core::alloc::Layout;
use std::thread;
use std::vec::Vec;

fn keep(block: *mut u8) {
    // SAFETY: the block is live, and not used again.
    unsafe { PROCESS.freed_early.keep(&PROCESS.shared, block) };
}

/// A heap, and a block of it.
fn heap_and_block(bytes: usize) -> (Heap, *mut u8) {
    // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
    let heap = unsafe { Heap::new() }.unwrap();
    let block = heap.allocate(Layout::from_size_align(bytes, 1).unwrap()).unwrap().as_ptr();
    (heap, block)
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn a_block_of_an_explicit_heap_is_kept_no_longer_than_its_heap_lives() {
    for bytes in [16, 1000, 20_000, 100_000] {
        let (heap, block) = heap_and_block(bytes);
        keep(block);
        drop(heap);
        // The block's memory gets new owners, which write what a kept block would have its link in; whoever gets a heap next would follow that.
        let owners: Vec<_> = (0..(8 << 20) / bytes).map(|_| allocate(bytes)).collect();
        // SAFETY: the blocks are this test's, and have as many bytes.
        owners.iter().for_each(|&block| unsafe { block.write_bytes(7, bytes) });
        thread::spawn(|| assert!(!allocate(1).is_null())).join().unwrap();
        // SAFETY: the blocks are live, and not used again.
        owners.into_iter().for_each(|block| unsafe { free::free(block) });
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn a_kept_block_does_not_count_as_live() {
    let (heap, block) = heap_and_block(1000);
    keep(block);
    assert_eq!(heap.stats().live, 0);
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn an_explicit_heap_is_not_deleted_while_a_thread_frees_kept_blocks() {
    let (heap, _) = heap_and_block(1000);
    let freeing = PROCESS.freed_early.freeing.lock();
    thread::scope(|scope| {
        let deleting = scope.spawn(|| drop(heap));
        for _ in 0..100 {
            thread::yield_now();
            assert!(!deleting.is_finished());
        }
        drop(freeing);
        deleting.join().unwrap();
    });
}
