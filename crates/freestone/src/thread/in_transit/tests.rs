#![allow(unsafe_code)]
use super::*;
use crate::span::Generation;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

const KEY: LinkKey = LinkKey::new(0x4040_1234_5678_9aba);

/// Memory of `n` blocks of 16 bytes, side by side as in spans.
fn memory(n: usize) -> Vec<*mut Node> {
    Box::leak(vec![0_u128; n].into_boxed_slice()).iter_mut().map(|block| ptr::from_mut(block).cast()).collect()
}

/// A batch with blocks, and these.
fn batch(n: usize, key: LinkKey) -> (Batch, Vec<*mut Node>) {
    let (batch, blocks) = (Batch::new(), memory(n));
    blocks.iter().for_each(|&block| add(&batch, block, key));
    (batch, blocks)
}

/// Adds a block.
fn add(batch: &Batch, block: *mut Node, key: LinkKey) {
    // SAFETY: the memory is leaked, and has room for two words.
    let is_full = batch.push(unsafe { FreeBlock::new(block.cast(), 0) }, key);
    assert_eq!(is_full, batch.len() == BATCH);
}

fn write(block: *mut Node, word: usize, value: u64) {
    // SAFETY: the memory is leaked, and has two words.
    unsafe { block.cast::<u64>().wrapping_add(word).write(value) }
}

fn read(block: *mut Node, word: usize) -> u64 {
    // SAFETY: the memory is leaked, and has two words.
    unsafe { block.cast::<u64>().wrapping_add(word).read() }
}

/// Links a batch. Returns its blocks, first to last, and what was wrong with the others.
fn link(batch: &Batch, key: LinkKey) -> (Vec<*mut Node>, Vec<(Marked, usize)>) {
    let mut wrong = Vec::new();
    let mut linked = Vec::new();
    if let Some(handover) = batch.link(key, |marked, address| wrong.push((marked, address))) {
        let mut at = handover.chain.first;
        while !at.is_null() {
            linked.push(at);
            assert!(linked.len() <= BATCH, "the links end");
            // SAFETY: the block is leaked memory.
            at = unsafe { free_node::next(at, key) };
        }
        assert_eq!(linked.last(), Some(&handover.chain.last));
        assert_eq!(linked.len(), handover.chain.len as usize);
    }
    (linked, wrong)
}

#[test]
fn a_batch_is_linked_from_the_last_block_to_the_first_and_is_empty_then() {
    for key in [LinkKey::PLAIN, KEY] {
        for n in [0, 1, 2, BATCH] {
            let (batch, mut blocks) = batch(n, key);
            assert_eq!(batch.len(), n);
            blocks.reverse();
            assert_eq!(link(&batch, key), (blocks, vec![]));
            assert_eq!(batch.len(), 0);
            assert_eq!(link(&batch, key), (vec![], vec![]));
        }
    }
}

#[test]
fn a_block_that_was_written_to_is_left_out_and_the_others_are_linked() {
    for at in 0..5 {
        for (word, what) in [(0, Marked::InTransit), (1, Marked::No)] {
            let (batch, mut blocks) = batch(5, KEY);
            write(blocks[at], word, 0x4141_4141);
            let wrong = blocks.remove(at);
            blocks.reverse();
            assert_eq!(link(&batch, KEY), (blocks, vec![(what, wrong.addr())]));
            assert_eq!(read(wrong, word), 0x4141_4141, "it is somebody else's");
        }
    }
}

#[test]
fn a_block_that_another_thread_has_freed_is_left_out() {
    let (batch, mut blocks) = batch(5, KEY);
    // SAFETY: the blocks are leaked memory.
    unsafe { free_node::write_in_bin(blocks[1], blocks[0], KEY) };
    // SAFETY: as above.
    unsafe { free_node::mark_suspect(blocks[3]) };
    let wrong = vec![(Marked::InBin, blocks[1].addr()), (Marked::Suspect, blocks[3].addr())];
    blocks = vec![blocks[4], blocks[2], blocks[0]];
    assert_eq!(link(&batch, KEY), (blocks, wrong));
}

#[test]
fn a_block_that_is_in_a_batch_twice_is_linked_once() {
    let (batch, blocks) = batch(3, KEY);
    // That the block is added twice is the point.
    add(&batch, blocks[1], KEY);
    let (linked, wrong) = link(&batch, KEY);
    assert_eq!((linked.len(), wrong.len()), (3, 1));
    assert_eq!(wrong[0].1, blocks[1].addr());
}

#[test]
fn without_a_key_no_block_is_checked() {
    let (batch, mut blocks) = batch(5, LinkKey::PLAIN);
    write(blocks[2], 1, 7);
    blocks.reverse();
    assert_eq!(link(&batch, LinkKey::PLAIN), (blocks, vec![]));
}

/// The block that a block in transit names: the upper half of the second word says how many times 8 bytes its own second word is away.
fn named_by(block: *mut Node) -> *mut Node {
    block.wrapping_byte_offset(((read(block, 1) >> 32) as i32 as isize - 1) * 8)
}

#[test]
fn each_block_names_the_one_sixteen_blocks_behind_it_in_the_batch_before_too() {
    let (batch, blocks) = (Batch::new(), memory(2 * BATCH + 20));
    let add = |at: usize| {
        if at == 0 {
            // SAFETY: the memory is leaked, and has room for two words.
            batch.turn_to(&unsafe { FreeBlock::new(blocks[at].cast(), 0) });
        }
        add(&batch, blocks[at], KEY);
    };
    // Batches of 32, of 10 and of 32 blocks.
    for range in [0..BATCH, BATCH..BATCH + 10, BATCH + 10..2 * BATCH + 10] {
        range.clone().for_each(add);
        assert_eq!(batch.len(), range.len());
        assert_eq!(link(&batch, KEY).0.len(), range.len());
    }
    for (at, &block) in blocks[..2 * BATCH + 10].iter().enumerate() {
        assert_eq!(named_by(block), blocks[at.saturating_sub(16)], "block {at}");
    }
}

#[test]
fn a_batch_for_another_owner_names_no_block_of_the_batch_before() {
    let (batch, _) = batch(BATCH, KEY);
    let _ = link(&batch, KEY);
    let blocks = memory(20);
    // SAFETY: the memory is leaked, and has room for two words.
    batch.turn_to(&unsafe { FreeBlock::new(blocks[0].cast(), 0) });
    blocks.iter().for_each(|&block| add(&batch, block, KEY));
    for (at, &block) in blocks.iter().enumerate() {
        assert_eq!(named_by(block), blocks[at.saturating_sub(16)], "block {at}");
    }
}

#[test]
fn a_batch_may_begin_anywhere_in_the_ring() {
    let batch = Batch::new();
    for n in (1..=BATCH).chain([BATCH]) {
        let mut blocks = memory(n);
        for &block in &blocks {
            assert!(!batch.holds(block));
            add(&batch, block, KEY);
            assert!(batch.holds(block));
        }
        assert_eq!(batch.len(), n);
        blocks.reverse();
        assert_eq!(link(&batch, KEY), (blocks, vec![]));
    }
}

#[test]
fn an_inbox_gives_what_was_pushed_and_a_closed_one_refuses_it() {
    let inbox = BlockInbox::new();
    let (batch, blocks) = batch(3, KEY);
    inbox.push(batch.link(KEY, |_, _| panic!()).unwrap()).unwrap();
    // SAFETY: the memory is leaked.
    let one = unsafe { FreeBlock::new(memory(1)[0].cast(), 0) };
    inbox.push_one(one, KEY, true).unwrap();
    let mut arrived = inbox.take(KEY);
    assert!(!arrived.is_empty() && inbox.take(KEY).is_empty());
    let is_lost = |found| matches!(found, Some(Found::Lost(_) | Found::Wrong(..)));
    assert!(is_lost(arrived.pop(&View::EMPTY, Generation::NONE.tag())), "these addresses are in no heap");
    assert!(arrived.is_empty(), "so no link is followed");

    assert!(inbox.close(KEY).is_empty());
    blocks.iter().for_each(|&block| {
        // SAFETY: the memory is leaked, and its block was taken above.
        let block = unsafe { FreeBlock::new(block.cast(), 0) };
        let address = block.address();
        assert_eq!(inbox.push_one(block, KEY, false).unwrap_err().address(), address);
    });
    inbox.open();
    assert!(inbox.take(KEY).is_empty());
}
