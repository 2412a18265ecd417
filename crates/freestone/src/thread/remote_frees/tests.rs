#![allow(unsafe_code)]
use super::*;
use crate::size_class::{N_CLASSES, class_of};
use crate::span::{Generation, View};
use std::boxed::Box;
use std::vec::Vec;

const CLASS: usize = 0;

fn block(class: usize) -> FreeBlock {
    let memory = Box::leak(Box::new([0u64; 2]));
    // SAFETY: the memory is leaked, and has room for two words; nothing else of the block is touched here.
    unsafe { FreeBlock::new(memory.as_mut_ptr().cast(), class) }
}

/// Addresses in a chain, first to last.
fn addresses(mut chain: InTransit) -> Vec<usize> {
    let next = |chain: &mut InTransit| match chain.pop(&View::EMPTY, Generation::NONE.tag()) {
        Some(crate::thread::free_block::Found::Lost(address)) => Some(address),
        _ => None,
    };
    core::iter::from_fn(|| next(&mut chain)).collect()
}

/// An open mailbox on the heap: its address decides which slot of the buffer its blocks go into.
fn open_mailbox() -> Box<Mailbox> {
    let mailbox = Box::new(Mailbox::new());
    mailbox.open();
    mailbox
}

#[test]
fn blocks_are_buffered_until_there_are_32_and_take_one_handover() {
    let (remote, owner) = (RemoteFrees::new(), open_mailbox());
    for n in 1..=3 * BATCH {
        assert!(remote.buffer(&owner, block(CLASS)).is_empty());
        assert_eq!(remote.n_handovers(), u64::from(n / BATCH), "after {n} blocks");
    }
    assert_eq!(addresses(owner.take(LinkKey::PLAIN)).len(), 3 * BATCH as usize);
}

#[test]
fn larger_blocks_are_buffered_until_they_have_64_kib() {
    let (remote, owner) = (RemoteFrees::new(), open_mailbox());
    let class = class_of(20_000);
    assert_eq!(BATCH_BYTES.div_ceil(block_bytes(class)), 4);
    (0..3).for_each(|_| assert!(remote.buffer(&owner, block(class)).is_empty()));
    assert_eq!(remote.n_handovers(), 0);
    let _ = remote.buffer(&owner, block(class));
    assert_eq!(remote.n_handovers(), 1);
    let _ = remote.buffer(&owner, block(class));
    assert_eq!(remote.n_handovers(), 1, "the next batch starts from nothing");
}

#[test]
fn everything_buffered_is_handed_over_to_its_owner() {
    let (remote, owners) = (RemoteFrees::new(), [open_mailbox(), open_mailbox()]);
    let sent: Vec<Vec<usize>> = owners
        .iter()
        .map(|owner| {
            let blocks = (0..5).map(|_| block(CLASS));
            blocks.map(|block| (block.address(), assert!(remote.buffer(owner, block).is_empty())).0).collect()
        })
        .collect();
    remote.hand_all_over(|_| panic!("both are open"));
    for (owner, sent) in owners.iter().zip(sent) {
        let mut arrived = addresses(owner.take(LinkKey::PLAIN));
        arrived.reverse();
        assert_eq!(arrived, sent);
    }
    remote.hand_all_over(|_| panic!("nothing is left"));
}

#[test]
fn a_slot_that_another_owner_needs_is_handed_over_first() {
    let remote = RemoteFrees::new();
    // One more than there are slots: two owners share one.
    let owners: Vec<_> = (0..=SLOTS).map(|_| open_mailbox()).collect();
    for owner in &owners {
        assert!(remote.buffer(owner, block(CLASS)).is_empty());
    }
    assert!(remote.n_handovers() > 0);
    remote.hand_all_over(|_| panic!("all are open"));
    owners
        .iter()
        .for_each(|owner| assert_eq!(addresses(owner.take(LinkKey::PLAIN)).len(), 1, "each has its own block"));
}

#[test]
fn blocks_that_a_closed_inbox_refuses_are_returned_to_the_sender() {
    let (remote, owner) = (RemoteFrees::new(), open_mailbox());
    (1..BATCH).for_each(|_| assert!(remote.buffer(&owner, block(CLASS)).is_empty()));
    assert!(owner.close(LinkKey::PLAIN).is_empty());
    assert_eq!(addresses(remote.buffer(&owner, block(CLASS))).len(), BATCH as usize);
    let _ = remote.buffer(&owner, block(CLASS));
    let mut n_refused = 0;
    remote.hand_all_over(|refused| n_refused += addresses(refused).len());
    assert_eq!(n_refused, 1);
    let one = block(CLASS);
    let address = one.address();
    assert_eq!(remote.hand_one_over(&owner, one, false).unwrap_err().address(), address);
}

#[test]
fn each_block_names_the_one_eight_blocks_behind_it() {
    let (remote, owner) = (RemoteFrees::new(), open_mailbox());
    for batch in 0..2 {
        // Close together, as in spans.
        let memory = Box::leak(Box::new([[0u64; 2]; BATCH as usize]));
        for block in memory {
            // SAFETY: the memory is leaked, and has room for two words.
            let block = unsafe { FreeBlock::new(block.as_mut_ptr().cast(), CLASS) };
            assert!(remote.buffer(&owner, block).is_empty());
        }
        let chain = addresses(owner.take(LinkKey::PLAIN));
        assert_eq!(chain.len(), BATCH as usize);
        for (at, address) in chain.iter().enumerate() {
            // SAFETY: the blocks are leaked, and the upper half of their second word says how many granules away the other one is.
            let granules = unsafe { core::ptr::with_exposed_provenance::<i32>(*address).wrapping_add(3).read() };
            let ahead = address.wrapping_add_signed(granules as isize * 16);
            assert_eq!(ahead, chain.get(at + AHEAD).copied().unwrap_or(address + 16), "block {at} of batch {batch}");
        }
    }
}

#[test]
fn no_single_block_fills_a_slot() {
    assert!((0..N_CLASSES).all(|class| block_bytes(class) < BATCH_BYTES));
}
