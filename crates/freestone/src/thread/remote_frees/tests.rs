#![allow(unsafe_code)]
use super::*;
use crate::size_class::{N_CLASSES, class_of};
use crate::span::View;
use crate::thread::free_block::Found;
use crate::thread::in_transit::BATCH;
use std::boxed::Box;
use std::vec::Vec;

const CLASS: usize = 0;

/// Keys of a process without hardening.
const PLAIN: Keys = Keys { of_bins: LinkKey::PLAIN, in_transit: LinkKey::PLAIN, of_inbox: LinkKey::PLAIN };

fn block(class: usize) -> FreeBlock {
    let memory: *mut u128 = Box::leak(Box::new(0));
    // SAFETY: the memory is leaked, and has room for two words; nothing else of the block is touched here.
    unsafe { FreeBlock::new(memory.cast(), class) }
}

/// Addresses in a chain, first to last.
fn addresses(mut chain: InTransit) -> Vec<usize> {
    let next = |chain: &mut InTransit| match chain.pop(&View::EMPTY, Generation::NONE.tag()) {
        Some(Found::Lost(address)) => Some(address),
        _ => None,
    };
    core::iter::from_fn(|| next(&mut chain)).collect()
}

/// Another heap: its generation and its mailbox, which is open.
struct Other(Generation, &'static Mailbox);

impl Other {
    /// The `n`-th of all.
    fn new(n: usize) -> Self {
        let mailbox = Box::leak(Box::new(Mailbox::new()));
        mailbox.open(LinkKey::PLAIN);
        Self((0..n).fold(Generation::FIRST, |generation, _| generation.next()), mailbox)
    }

    fn arrived(&self) -> Vec<usize> {
        addresses(self.1.inbox().take(LinkKey::PLAIN))
    }
}

/// Buffers a block as `route` does. Returns the blocks that a closed inbox refused.
fn buffer(remote: &RemoteFrees, to: &Other, block: FreeBlock) -> Vec<usize> {
    let wrong = |_, _| panic!("nothing is written to a buffered block");
    let (slot, refused) = match remote.slot_of(to.0) {
        Some(slot) => (slot, InTransit::NONE),
        None => remote.begin_slot((to.0, Owner::of(to.1)), &block, wrong),
    };
    let full = if remote.buffer(slot, block) { remote.hand_over(slot, wrong) } else { InTransit::NONE };
    [addresses(refused), addresses(full)].concat()
}

fn hand_all_over(remote: &RemoteFrees) -> Vec<usize> {
    let mut refused = Vec::new();
    remote.hand_all_over(|_, _| panic!("nothing is written"), |chain| refused.extend(addresses(chain)));
    refused
}

#[test]
fn blocks_are_buffered_until_there_are_32_and_take_one_handover() {
    let (remote, owner) = (RemoteFrees::new(), Other::new(0));
    for n in 1..=3 * BATCH {
        assert_eq!(buffer(&remote, &owner, block(CLASS)), []);
        assert_eq!(remote.n_handovers(), (n / BATCH) as u64, "after {n} blocks");
    }
    assert_eq!(owner.arrived().len(), 3 * BATCH);
}

#[test]
fn larger_blocks_are_buffered_until_they_have_64_kib() {
    for (size, n) in [(UNCOUNTED_MAX + 1, 29), (20_000, 4), (SMALL_MAX, 2)] {
        let (remote, owner) = (RemoteFrees::new(), Other::new(0));
        let class = class_of(size);
        assert_eq!(BATCH_BYTES.div_ceil(block_bytes(class)), n, "{size}");
        (1..n).for_each(|_| drop(buffer(&remote, &owner, block(class))));
        assert_eq!(remote.n_handovers(), 0);
        buffer(&remote, &owner, block(class));
        assert_eq!(remote.n_handovers(), 1);
        buffer(&remote, &owner, block(class));
        assert_eq!(remote.n_handovers(), 1, "the next batch starts from nothing");
    }
}

#[test]
fn the_bytes_of_blocks_up_to_2_kib_are_not_counted_and_no_larger_block_is_taken_for_one() {
    let (remote, owner) = (RemoteFrees::new(), Other::new(0));
    let (counted, uncounted) = (class_of(UNCOUNTED_MAX + 1), class_of(UNCOUNTED_MAX));
    assert_eq!((block_bytes(uncounted), UNCOUNTED_MAX * BATCH), (2048, BATCH_BYTES));
    // 60 KiB of larger blocks, then as many smaller ones as make the batch full.
    let n = 60 * 1024 / block_bytes(counted);
    (0..n).for_each(|_| drop(buffer(&remote, &owner, block(counted))));
    let found = |class| remote.slot_and_class(Entry::small(owner.0, class as _)).map(|(_, class)| class);
    assert_eq!((found(uncounted), found(counted)), (Some(uncounted), None));
    for at in n + 1..BATCH {
        let slot = remote.slot_of(owner.0).unwrap();
        let one = block(uncounted);
        let is_full = if at % 2 == 0 { remote.buffer(slot, one) } else { remote.buffer_uncounted(slot, one) };
        assert!(!is_full);
    }
    assert_eq!(remote.n_handovers(), 0);
    assert!(remote.buffer_uncounted(remote.slot_of(owner.0).unwrap(), block(uncounted)));
}

#[test]
fn everything_buffered_is_handed_over_to_its_owner() {
    let (remote, owners) = (RemoteFrees::new(), [Other::new(0), Other::new(1)]);
    let sent: Vec<Vec<usize>> = owners
        .iter()
        .map(|owner| {
            let blocks = (0..5).map(|_| block(CLASS));
            blocks.map(|block| (block.address(), assert_eq!(buffer(&remote, owner, block), [])).0).collect()
        })
        .collect();
    assert_eq!(hand_all_over(&remote), []);
    for (owner, sent) in owners.iter().zip(sent) {
        let mut arrived = owner.arrived();
        arrived.reverse();
        assert_eq!(arrived, sent);
    }
    assert_eq!(hand_all_over(&remote), []);
    assert_eq!(remote.n_handovers(), 2);
}

#[test]
fn a_slot_that_another_owner_needs_is_handed_over_first() {
    let remote = RemoteFrees::new();
    // One more than there are slots: two owners share one.
    let owners: Vec<_> = (0..=SLOTS).map(Other::new).collect();
    for owner in &owners {
        assert_eq!(buffer(&remote, owner, block(CLASS)), []);
    }
    assert_eq!(remote.n_handovers(), 1);
    assert_eq!(hand_all_over(&remote), []);
    owners.iter().for_each(|owner| assert_eq!(owner.arrived().len(), 1, "each has its own block"));
}

#[test]
fn a_slot_that_was_full_stays_its_owners_until_all_are_handed_over() {
    let (remote, owner) = (RemoteFrees::new(), Other::new(3));
    assert!(remote.slot_of(owner.0).is_none());
    buffer(&remote, &owner, block(CLASS));
    assert!(remote.slot_of(owner.0).is_some());
    assert!(remote.slot_of(Other::new(3 + SLOTS).0).is_none(), "the slot is another's");
    (1..BATCH).for_each(|_| drop(buffer(&remote, &owner, block(CLASS))));
    assert_eq!(remote.n_handovers(), 1);
    assert!(remote.slot_of(owner.0).is_some());
    hand_all_over(&remote);
    assert_eq!(remote.n_handovers(), 1);
    assert!(remote.slot_of(owner.0).is_none());
}

#[test]
fn a_slot_is_found_by_the_entries_of_its_owners_pages_alone_however_the_memory_began() {
    // SAFETY: as in the records of heaps: zeroed memory, in which the heap begins.
    let remote: RemoteFrees = unsafe { core::mem::MaybeUninit::zeroed().assume_init() };
    remote.begin(&PLAIN);
    let owner = Other::new(6);
    let is_found = |entry| remote.slot_and_class(entry).map(|(_, class)| class);
    for entry in
        [Entry::NONE, Entry::LARGE, Entry::CACHED, Entry::small(Generation::ABANDONED, 0), Entry::small(owner.0, 5)]
    {
        assert_eq!(is_found(entry), None);
    }
    buffer(&remote, &owner, block(CLASS));
    assert_eq!(is_found(Entry::small(owner.0, 5)), Some(5));
    assert_eq!(is_found(Entry::small(Other::new(6 + SLOTS).0, 5)), None);
    // A record's next heap.
    remote.begin(&PLAIN);
    assert_eq!(is_found(Entry::small(owner.0, 5)), None);
}

#[test]
fn blocks_that_a_closed_inbox_refuses_are_returned_to_the_sender() {
    let (remote, owner) = (RemoteFrees::new(), Other::new(0));
    (1..BATCH).for_each(|_| assert_eq!(buffer(&remote, &owner, block(CLASS)), []));
    assert!(owner.1.inbox().close(LinkKey::PLAIN).is_empty());
    assert_eq!(buffer(&remote, &owner, block(CLASS)).len(), BATCH);
    buffer(&remote, &owner, block(CLASS));
    assert_eq!(hand_all_over(&remote).len(), 1);
    let one = block(CLASS);
    let address = one.address();
    assert_eq!(remote.hand_one_over(owner.1, one).unwrap_err().address(), address);
}

#[test]
fn a_buffered_block_is_held_until_it_is_handed_over() {
    let (remote, owner) = (RemoteFrees::new(), Other::new(0));
    let nodes: Vec<_> = (0..3).map(|_| block(CLASS)).map(|block| (block.node(), block)).collect();
    for (node, block) in nodes {
        assert!(!remote.holds(node));
        buffer(&remote, &owner, block);
        assert!(remote.holds(node));
        hand_all_over(&remote);
        assert!(!remote.holds(node));
    }
}

#[test]
fn no_single_block_fills_a_slot() {
    assert!((0..N_CLASSES).all(|class| block_bytes(class) < BATCH_BYTES));
}
