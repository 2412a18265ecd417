//! How long the lab's workload `random_mixed` takes with Freestone, as a share of what it takes with the system's heap: HeapAlloc on Windows, `malloc`
//! elsewhere. `cargo xtask platforms` runs it where the lab does not run.
//!
//! Both take turns in one process, so that what else the machine does meets both; the figure is the median of the rounds.
#![allow(unsafe_code)]
//! # Safety
//! A block is written within its size, and freed once, by the allocator and with the layout that it came from.

use freestone::Freestone;
use std::alloc::{GlobalAlloc, Layout, System};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: Freestone = Freestone;

const ROUNDS: usize = 21;
const OPERATIONS: u32 = 2_000_000;
const SLOTS: usize = 400;
/// The smallest block holds a number at each end.
const SMALLEST: usize = 16;
const LARGER_BY: u32 = 0x3FF;

/// A block, and its layout.
type Block = (*mut u64, Layout);

/// Picks a slot at random, again and again: fills an empty one, and frees the block of a full one. Returns the sum of what was read from freed blocks.
fn random_mixed<A: GlobalAlloc>(heap: &A) -> u64 {
    let mut slots: [Option<Block>; SLOTS] = [None; SLOTS];
    let (mut state, mut sum) = (42_u64, 0);
    for _ in 0..OPERATIONS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = (state >> 32) as u32;
        let slot = (u64::from(number) * SLOTS as u64) >> 32;
        match slots[slot as usize].take() {
            Some(block) => sum += free(heap, block),
            None => slots[slot as usize] = Some(allocate(heap, SMALLEST + (number & LARGER_BY) as usize, slot)),
        }
    }
    sum + slots.into_iter().flatten().map(|block| free(heap, block)).sum::<u64>()
}

/// A block with `number` at both ends.
fn allocate<A: GlobalAlloc>(heap: &A, size: usize, number: u64) -> Block {
    let layout = Layout::from_size_align(size, align_of::<u64>()).expect("the size is small");
    // SAFETY: the layout has a size of 16 or more.
    let block = unsafe { heap.alloc(layout) }.cast::<u64>();
    assert!(!block.is_null(), "no memory");
    // SAFETY: the block has 16 bytes or more, and is aligned to 8.
    unsafe { block.write(number) };
    // SAFETY: the block has 8 bytes before its end.
    unsafe { last_number((block, layout)).write_unaligned(number) };
    (block, layout)
}

/// The last bytes of a block.
fn last_number((block, layout): Block) -> *mut u64 {
    block.wrapping_byte_add(layout.size() - size_of::<u64>())
}

/// Frees a block; returns what was at its ends.
fn free<A: GlobalAlloc>(heap: &A, block: Block) -> u64 {
    // SAFETY: `allocate` has written the first number, and nobody has freed the block: its slot is empty since it was taken from there.
    let first = unsafe { block.0.read() };
    // SAFETY: `allocate` has written the last number, too.
    let last = unsafe { last_number(block).read_unaligned() };
    assert_eq!(first, last, "another block was written over this one");
    // SAFETY: the block is from this heap, and was allocated with this layout.
    unsafe { heap.dealloc(block.0.cast(), block.1) };
    first
}

/// Seconds that `work` takes, and what it returns.
fn timed(work: impl FnOnce() -> u64) -> (f64, u64) {
    let began = Instant::now();
    let result = work();
    (began.elapsed().as_secs_f64(), result)
}

fn main() {
    let mut ratios = Vec::new();
    for round in 0..=ROUNDS {
        let system_first = round % 2 == 1;
        let early = system_first.then(|| timed(|| random_mixed(&System)));
        let (own, own_sum) = timed(|| random_mixed(&ALLOCATOR));
        let (system, system_sum) = early.unwrap_or_else(|| timed(|| random_mixed(&System)));
        assert_eq!(own_sum, system_sum, "the same work");
        // The first round finds no memory that was used before.
        if round > 0 {
            ratios.push(own / system);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let at = |share: usize| ratios[(ROUNDS - 1) * share / 4];
    println!(
        "random_mixed: Freestone takes {:.2} times as long as the system's heap (median of {ROUNDS} rounds; half of them from {:.2} to {:.2})",
        at(2),
        at(1),
        at(3)
    );
}
