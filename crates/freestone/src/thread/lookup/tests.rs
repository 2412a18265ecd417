#![allow(unsafe_code)]
//! Heaps whose views are old. In tests a view reaches no further than it must (`PageHeap::publish_reach`), so that it is old as soon as
//! another heap gets a page.
use crate::size_class::{block_bytes, class_of};
use crate::testing::{World, fill, free, freed, is_filled, reallocate};
use crate::thread::drain::drain;
use crate::thread::flush;
use crate::thread::free_block::FreeBlock;
use crate::thread::heap::own::Own;
use crate::thread::upkeep;
use freestone_os::fake::Fake;
use std::vec::Vec;

/// A block, and how much of it is filled with which byte.
struct Block {
    start: *mut u8,
    size: usize,
    byte: u8,
}

impl Block {
    fn new(start: *mut u8, size: usize, byte: u8) -> Self {
        fill(start, byte, size);
        Self { start, size, byte }
    }

    fn check(&self) {
        assert!(is_filled(self.start, self.byte, self.size), "{:?} was written to", self.start);
    }
}

/// The fast path of `free`. Returns whether it applied.
fn free_quickly(heap: Own<'_, Fake>, block: *mut u8) -> bool {
    let class = heap
        .bins()
        .lookup()
        .view()
        .entry(block.addr())
        .and_then(|entry| entry.class_if_owned(heap.bins().lookup().tag()));
    class.map(|class| flush::push(heap, freed(block, class))).is_some()
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n
    }
}

#[test]
fn a_heap_finds_its_own_spans_at_once_and_those_of_others_in_the_newest_view() {
    let world = World::new(4096);
    let (first, second) = (world.heap(), world.heap());
    {
        let own = first.allocate(100, 1).start;
        assert_eq!(first.bins().lookup().view().small_class(own.addr()), Some(class_of(100)));
        // The second heap has extended the committed pages: the first one's view is old.
        let other = (0..)
            .map(|_| second.allocate(30_000, 1).start)
            .find(|at| first.bins().lookup().view().page_of(at.addr()).is_none());
        let other = other.unwrap();
        assert_eq!(second.bins().lookup().view().small_class(other.addr()), Some(class_of(30_000)));
        assert_eq!(first.usable_bytes(other), Some(block_bytes(class_of(30_000))));
        assert_eq!(first.bins().lookup().view().small_class(other.addr()), Some(class_of(30_000)));
    }
}

/// As Rust's `dealloc` of a known layout does: nothing is looked up before the bin is flushed.
#[test]
fn a_block_beyond_the_view_that_went_into_a_bin_is_returned_when_the_bin_is_flushed() {
    let world = World::new(4096);
    let (first, second) = (world.heap(), world.heap());
    // SAFETY: the heaps and the blocks are this test's.
    unsafe {
        let other = (0..)
            .map(|_| second.allocate(30_000, 1).start)
            .find(|at| first.bins().lookup().view().page_of(at.addr()).is_none());
        flush::push(first, FreeBlock::new(other.unwrap(), class_of(30_000)));
        upkeep::flush_all(first);
        drain(second);
        assert_eq!(second.bins().first(class_of(30_000)).cast(), other.unwrap());
    }
    world.check().unwrap();
}

#[test]
fn heaps_whose_views_are_old_free_resize_and_send_each_others_blocks() {
    let n = if cfg!(miri) { 300 } else { 20_000 };
    for seed in 1..if cfg!(miri) { 2 } else { 6 } {
        let world = World::new(4096);
        let mut heaps: Vec<Own<'_, Fake>> = (0..4).map(|_| world.heap()).collect();
        let (mut random, mut blocks) = (Random(seed), Vec::<Block>::new());
        for step in 0..n {
            let (heap, byte) = (heaps[random.below(4)], step as u8);
            match random.below(16) {
                0..9 => {
                    let most = if random.below(8) == 0 { 200_000 } else { 3_000 };
                    let size = 1 + random.below(most);
                    let start = heap.allocate(size, 1).start;
                    assert!(!start.is_null());
                    let entry = world.shared.pages.view().entry(start.addr());
                    let is_own = entry.is_some_and(|entry| entry.class_if_owned(heap.bins().lookup().tag()).is_some());
                    let sees = heap.bins().lookup().view().small_class(start.addr()).is_some();
                    assert!(sees || !is_own, "a heap sees its own spans");
                    blocks.push(Block::new(start, size, byte));
                }
                // A heap ends, another adopts its spans, and a new one begins.
                15 if random.below(20) == 0 => {
                    let at = random.below(4);
                    world.end(heaps[at]);
                    heaps[at] = world.heap();
                }
                _ if blocks.is_empty() => {}
                way => {
                    let block = blocks.swap_remove(random.below(blocks.len()));
                    block.check();
                    let class = world.shared.pages.view().small_class(block.start.addr());
                    match way {
                        // As Rust's `dealloc` does with a known layout: into the bin, whichever heap owns it.
                        9..12 if let Some(class) = class => flush::push(heap, freed(block.start, class)),
                        12 => {
                            let size = 1 + random.below(5_000);
                            let start = reallocate(heap, block.start, size);
                            assert!(!start.is_null());
                            Block { start, size: block.size.min(size), byte: block.byte }.check();
                            blocks.push(Block::new(start, size, byte));
                        }
                        _ if free_quickly(heap, block.start) => {}
                        _ => free(heap, block.start),
                    }
                }
            }
            if step % 1000 == 0 {
                world.check().unwrap();
            }
        }
        blocks.iter().for_each(|block| free(heaps[0], block.start));
        heaps.iter().for_each(|heap| upkeep::flush_all(*heap));
        heaps.iter().for_each(|heap| upkeep::flush_all(*heap));
        world.check().unwrap();
        heaps.into_iter().for_each(|heap| world.end(heap));
        world.check().unwrap();
        let (stats, freed) = (world.shared.pages.stats(), u64::from(world.shared.pages.freed_pages().0));
        assert_eq!((stats.large_pages, stats.small_pages), (freed, 0), "a block was lost");
    }
}
