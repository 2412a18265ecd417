//! The verdicts: what the roots lead to is reachable; of the rest, some blocks are lost, and the others are lost with them.
//!
//! A group of lost blocks that refer to each other in a circle has no first one. As in valgrind, the one with the lowest address stands for it:
//! the blocks are visited in the order of their addresses, and a block that was found to be lost is lost indirectly if a later one leads to it.

use crate::leaks::heap::{Blocks, Heap};
use crate::leaks::memory::{Memory, words_in};
use crate::leaks::roots::Roots;
use crate::leaks::verdict::Verdict;
use std::collections::BTreeMap;

/// Most bytes of blocks that are read at once.
const READ_BYTES: u64 = 1 << 20;

/// A block, by its heap's number and its own.
type Block = (usize, u64);

/// The verdicts on the live blocks of each heap that are not reachable, by number.
pub(super) fn mark(memory: &Memory, heaps: &mut [Heap], roots: &Roots) -> Vec<BTreeMap<u64, Verdict>> {
    let mut found = Vec::new();
    let visit = |word: u64, heaps: &mut [Heap], found: &mut Vec<Block>| {
        if let Some((heap, block)) = block_at(heaps, word)
            && !heaps[heap].marked.has(block)
        {
            heaps[heap].marked.add(block);
            found.push((heap, block));
        }
    };
    roots.words.iter().for_each(|&word| visit(word, heaps, &mut found));
    for &(start, end) in &roots.ranges {
        memory.scan(start, end, |_, bytes| words_in(bytes).for_each(|word| visit(word, heaps, &mut found)));
    }
    follow(memory, heaps, found, |_| {});
    let reachable: Vec<Blocks> = heaps.iter().map(|heap| heap.marked.clone()).collect();
    let mut verdicts: Vec<BTreeMap<u64, Verdict>> = vec![BTreeMap::new(); heaps.len()];
    for heap in 0..heaps.len() {
        let lost: Vec<u64> = heaps[heap].live_blocks().filter(|&block| !heaps[heap].marked.has(block)).collect();
        for first in lost {
            // A block before it may have led to it.
            if heaps[heap].marked.has(first) {
                continue;
            }
            heaps[heap].marked.add(first);
            verdicts[heap].insert(first, Verdict::DefinitelyLost);
            follow(memory, heaps, vec![(heap, first)], |(other, block)| {
                if (other, block) != (heap, first) && !reachable[other].has(block) {
                    verdicts[other].insert(block, Verdict::IndirectlyLost);
                }
            });
        }
    }
    verdicts
}

/// Marks what `from` leads to, and calls `met` with every block that is referred to on the way, whether or not it was marked before.
fn follow(memory: &Memory, heaps: &mut [Heap], from: Vec<Block>, mut met: impl FnMut(Block)) {
    let mut waiting = from;
    while !waiting.is_empty() {
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        while bytes < READ_BYTES
            && let Some((heap, block)) = waiting.pop()
        {
            let (start, length) = heaps[heap].place_of(block);
            if length <= READ_BYTES {
                pieces.push((start, length as usize));
                bytes += length;
                continue;
            }
            memory.scan(start, start + length, |_, contents| note(contents, heaps, &mut waiting, &mut met));
        }
        memory.read_pieces(&pieces, |contents| note(contents, heaps, &mut waiting, &mut met));
    }
}

/// Marks the blocks that words refer to, and puts those that were not marked into `waiting`.
fn note(contents: &[u8], heaps: &mut [Heap], waiting: &mut Vec<Block>, met: &mut impl FnMut(Block)) {
    for word in words_in(contents) {
        let Some((heap, block)) = block_at(heaps, word) else { continue };
        met((heap, block));
        if !heaps[heap].marked.has(block) {
            heaps[heap].marked.add(block);
            waiting.push((heap, block));
        }
    }
}

fn block_at(heaps: &[Heap], address: u64) -> Option<Block> {
    heaps.iter().enumerate().find_map(|(number, heap)| Some((number, heap.block_at(address)?)))
}
