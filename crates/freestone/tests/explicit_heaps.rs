//! Explicit heaps in a Rust program whose global allocator is the same: blocks freed by other threads, and heaps dropped right after.
#![allow(unsafe_code)]

use freestone::{Freestone, Heap};
use std::alloc::Layout;
use std::ptr::NonNull;
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
