//! Every short sequence of operations on the smallest heaps, with every invariant checked after each operation.
//!
//! A step allocates one of 9 sizes at one of 4 alignments, or frees one of the live blocks. What a heap does next depends only on its own
//! bytes and its region's, so both are copied before a step and restored after it. Two requests that get the same
//! block of the same length leave the same heap: continuations are played for the first of them.
//! `cargo xtask tlsf-sequences` plays length 6.
#![allow(unsafe_code, reason = "the heap's own interface")]

mod subject;

use freestone_tlsf::{Standard, Tlsf};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use subject::Memory;

type Heap = Tlsf<'static, Standard, 8, 32, 1>;

// Miri takes a millisecond for a step.
const SIZES: &[usize] = if cfg!(miri) { &[1, 24, 25, 200] } else { &[1, 8, 24, 25, 56, 100, 200, 504, 2000] };
const ALIGNMENTS: &[usize] = if cfg!(miri) { &[1, 256] } else { &[1, 16, 32, 256] };
const REGIONS: &[usize] = if cfg!(miri) { &[512, 2048] } else { &[256, 512, 1024, 2048, 4096] };

/// Length of the sequences if the environment does not say otherwise.
const LENGTH: u32 = if cfg!(miri) { 2 } else { 4 };

/// A block, filled with its own mark.
#[derive(Clone, Copy)]
struct Live {
    block: NonNull<u8>,
    bytes: usize,
    mark: u8,
}

impl Live {
    fn is_intact(self) -> bool {
        // SAFETY: the block is live.
        (0..self.bytes).all(|at| unsafe { self.block.as_ptr().wrapping_add(at).read() } == self.mark)
    }
}

/// A heap over a region of its own, and its live blocks.
struct World {
    heap: Heap,
    memory: Memory,
    region_bytes: usize,
    live: Vec<Live>,
    n_ops: u64,
}

/// What a heap and its region consist of.
struct Copied {
    heap: MaybeUninit<Heap>,
    region: Vec<MaybeUninit<u8>>,
}

impl World {
    fn new(region_bytes: usize) -> Self {
        let memory = Memory::new(region_bytes);
        let mut heap = Heap::with_policy();
        // SAFETY: the memory lives as long as the heap.
        unsafe { heap.add_region_at(memory.start, region_bytes).unwrap() };
        Self { heap, memory, region_bytes, live: Vec::new(), n_ops: 0 }
    }

    fn copied(&self) -> Copied {
        let (mut heap, mut region) = (MaybeUninit::<Heap>::uninit(), vec![MaybeUninit::uninit(); self.region_bytes]);
        // SAFETY: a heap has no destructor, and one of the two copies is used at a time.
        unsafe { heap.as_mut_ptr().copy_from_nonoverlapping(&raw const self.heap, 1) };
        // SAFETY: as above.
        unsafe { region.as_mut_ptr().copy_from_nonoverlapping(self.memory.start.cast().as_ptr(), self.region_bytes) };
        Copied { heap, region }
    }

    fn put_back(&mut self, copied: &Copied) {
        // SAFETY: as above.
        unsafe { (&raw mut self.heap).copy_from_nonoverlapping(copied.heap.as_ptr(), 1) };
        let start: NonNull<MaybeUninit<u8>> = self.memory.start.cast();
        // SAFETY: as above.
        unsafe { start.as_ptr().copy_from_nonoverlapping(copied.region.as_ptr(), self.region_bytes) };
    }

    /// Does every step that is possible now, and after each of them all that `left - 1` more can be.
    fn explore(&mut self, left: u32) {
        if left == 0 {
            return;
        }
        let before = self.copied();
        let mut seen = Vec::new();
        for (&bytes, &align) in SIZES.iter().flat_map(|bytes| ALIGNMENTS.iter().map(move |align| (bytes, align))) {
            self.n_ops += 1;
            let given = self.heap.allocate(bytes, align);
            self.heap.check().unwrap();
            let Ok(block) = given else { continue };
            assert!(block.addr().get().is_multiple_of(align));
            // SAFETY: a live block.
            let place = (block, unsafe { self.heap.usable_size(block).unwrap() });
            if !seen.contains(&place) {
                seen.push(place);
                let mark = self.live.len() as u8 + 1;
                // SAFETY: the block was just given out.
                unsafe { block.write_bytes(mark, bytes) };
                self.live.push(Live { block, bytes, mark });
                assert!(self.live.iter().all(|live| live.is_intact()), "blocks overlap");
                self.explore(left - 1);
                self.live.pop();
            }
            self.put_back(&before);
        }
        for index in 0..self.live.len() {
            self.n_ops += 1;
            let freed = self.live.remove(index);
            assert!(freed.is_intact());
            // SAFETY: given back once.
            unsafe { self.heap.deallocate(freed.block).unwrap() };
            self.heap.check().unwrap();
            self.explore(left - 1);
            self.put_back(&before);
            self.live.insert(index, freed);
        }
    }
}

#[test]
fn every_short_sequence_on_the_smallest_heaps_keeps_every_invariant() {
    let length = std::env::var("TLSF_SEQUENCE_LENGTH").map_or(LENGTH, |length| length.parse().unwrap());
    for &region_bytes in REGIONS {
        let mut world = World::new(region_bytes);
        world.explore(length);
        println!("{region_bytes} bytes: {} operations, sequences of {length}", world.n_ops);
        assert!(world.n_ops > (SIZES.len() * ALIGNMENTS.len()) as u64 * u64::from(length));
        assert_eq!(world.heap.stats().used_blocks, 0);
    }
}
