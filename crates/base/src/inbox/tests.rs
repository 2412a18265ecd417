#![allow(unsafe_code)]
extern crate std;
use super::*;
use std::vec::Vec;

#[cfg(not(loom))]
mod nodes;
#[cfg(not(loom))]
use nodes::{consume, node};

#[cfg(not(loom))]
#[test]
fn a_key_is_plain_if_it_leaves_every_address_as_it_is() {
    let block = core::ptr::without_provenance_mut::<Node>(0x1230);
    for key in [LinkKey::PLAIN, LinkKey::new(0x10), LinkKey::new(usize::MAX)] {
        assert_eq!(key.is_plain(), key.apply(block) == block);
    }
}

#[cfg(not(loom))]
#[test]
fn what_is_pushed_is_taken_once_newest_first() {
    let inbox = Inbox::new();
    let nodes: Vec<_> = (0..3).map(|_| node()).collect();
    for &node in &nodes {
        // SAFETY: a chain of one that is ours.
        assert!(unsafe { inbox.push(node, node, LinkKey::PLAIN) });
    }
    let chain = inbox.take();
    assert_eq!(chain, nodes[2]);
    assert_eq!(consume(chain), 3);
    assert!(inbox.take().is_null());
}

#[cfg(not(loom))]
#[test]
fn a_closed_inbox_refuses_until_it_is_opened() {
    let inbox = Inbox::new();
    let node = node();
    // SAFETY: a chain of one that is ours, each time it was refused or taken back.
    let push = || unsafe { inbox.push(node, node, LinkKey::PLAIN) };
    assert!(push());
    assert_eq!(inbox.close(), node);
    assert!(!push());
    // SAFETY: the node was refused, and is ours.
    assert!(unsafe { &*node }.next.is_null(), "the chain that its owner still has ends");
    assert!(inbox.take().is_null() && inbox.close().is_null());
    inbox.open();
    assert!(push());
    assert_eq!(consume(inbox.take()), 1);
}

#[cfg(not(loom))]
#[test]
fn what_another_thread_takes_is_put_back_only_into_an_empty_open_inbox() {
    let inbox = Inbox::new();
    let nodes: Vec<_> = (0..3).map(|_| node()).collect();
    // SAFETY: a chain of one that is ours.
    let push = |node| unsafe { inbox.push(node, node, LinkKey::PLAIN) };
    assert!(inbox.take_for_owner().is_null() && inbox.newest() == 0);
    assert!(push(nodes[0]) && push(nodes[1]));
    assert_eq!(inbox.newest(), nodes[1].addr());
    let taken = inbox.take_for_owner();
    assert_eq!(taken, nodes[1]);
    assert!(inbox.is_empty() && push(nodes[2]));
    assert!(!inbox.put_back(taken), "not over what came meanwhile");
    assert_eq!(consume(inbox.take()), 1);
    assert!(inbox.put_back(taken));
    assert_eq!(consume(inbox.close()), 2);
    assert!(inbox.take_for_owner().is_null() && inbox.newest() == 0);
    let node = node();
    assert!(!inbox.put_back(node), "it is still closed");
    assert_eq!(consume(node), 1);
}

#[cfg(not(loom))]
#[test]
fn the_links_of_a_chain_are_encoded_with_its_key() {
    let (inbox, key) = (Inbox::new(), LinkKey::new(0x5A5A));
    let nodes: Vec<_> = (0..2).map(|_| node()).collect();
    for &node in &nodes {
        // SAFETY: a chain of one that is ours.
        assert!(unsafe { inbox.push(node, node, key) });
    }
    assert_eq!(inbox.take(), nodes[1], "the head is an address");
    // SAFETY: the nodes are ours again.
    let [newest, oldest] = [nodes[1], nodes[0]].map(|node| unsafe { (*node).next });
    assert_eq!((newest.addr(), key.apply(newest)), (nodes[0].addr() ^ 0x5A5A, nodes[0]));
    assert!(key.apply(oldest).is_null());
    // SAFETY: as above, and each is freed once.
    nodes.iter().for_each(|&node| drop(unsafe { std::boxed::Box::from_raw(node) }));
}

/// Blocks whose contents are loom cells: a read that is not ordered after the pusher's write is a data race.
#[cfg(loom)]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use std::boxed::Box;
    use std::sync::Arc;

    #[repr(C)]
    struct Block {
        node: Node,
        contents: UnsafeCell<u32>,
    }

    /// A block that its pusher has written to.
    fn written() -> *mut Node {
        let block = Block { node: Node { next: ptr::null_mut() }, contents: UnsafeCell::new(0) };
        // SAFETY: no other thread has the block's address yet.
        block.contents.with_mut(|contents| unsafe { *contents = 7 });
        Box::into_raw(Box::new(block)).cast()
    }

    /// Reads and overwrites the contents of a chain, frees it, and returns its length.
    fn use_up(mut chain: *mut Node) -> usize {
        let mut len = 0;
        while !chain.is_null() {
            // SAFETY: every block was made by `written` and is taken once.
            let block = unsafe { Box::from_raw(chain.cast::<Block>()) };
            // SAFETY: the block is this thread's, which is what the model is about.
            block.contents.with_mut(|contents| unsafe { assert_eq!(core::mem::replace(&mut *contents, 0), 7) });
            chain = block.node.next;
            len += 1;
        }
        len
    }

    /// Pushes a written block. Returns how many blocks the pusher still has: one if the push was refused.
    fn send(inbox: &Inbox) -> usize {
        let block = written();
        // SAFETY: a chain of one that is ours.
        if unsafe { inbox.push(block, block, LinkKey::PLAIN) } { 0 } else { use_up(block) }
    }

    /// Two threads hand blocks over while the owner drains and then exits: each block is seen exactly once, with its contents.
    #[test]
    fn every_block_reaches_the_owner_or_stays_with_its_pusher() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new());
            let pushers: Vec<_> = (0..2)
                .map(|_| {
                    let inbox = Arc::clone(&inbox);
                    loom::thread::spawn(move || send(&inbox))
                })
                .collect();
            let mut seen = use_up(inbox.take());
            seen += use_up(inbox.close());
            seen += pushers.into_iter().map(|pusher| pusher.join().unwrap()).sum::<usize>();
            assert_eq!(seen, 2);
            assert!(inbox.is_empty());
        });
    }

    /// The owner drains twice and does not exit: it may write to what it takes.
    #[test]
    fn what_is_taken_has_the_contents_that_were_pushed() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new());
            let other = Arc::clone(&inbox);
            let pusher = loom::thread::spawn(move || send(&other) + send(&other));
            let mut seen = use_up(inbox.take()) + use_up(inbox.take());
            assert_eq!(pusher.join().unwrap(), 0);
            seen += use_up(inbox.take());
            assert_eq!(seen, 2);
        });
    }

    /// A block in transit while its span is abandoned: the pusher either finds the inbox open, and the closer passes the block
    /// on, or is refused, and then sees what the owner wrote before it closed. `pushes`: whether the first load sees the refusal, or
    /// an exchange that failed does.
    fn refused(pushes: usize) {
        let shared = Arc::new((Inbox::new(), UnsafeCell::new(7)));
        let other = Arc::clone(&shared);
        let pusher = loom::thread::spawn(move || {
            let mut left = 0;
            for _ in 0..pushes {
                let block = written();
                // SAFETY: a chain of one that is ours.
                if !unsafe { other.0.push(block, block, LinkKey::PLAIN) } {
                    // SAFETY: the closer has written it and does not any more.
                    assert_eq!(other.1.with(|owner| unsafe { *owner }), 0, "refused before the span was abandoned");
                    left += use_up(block);
                }
            }
            left
        });
        // SAFETY: no other thread reads it before the inbox is closed.
        shared.1.with_mut(|owner| unsafe { *owner = 0 });
        let seen = use_up(shared.0.close()) + pusher.join().unwrap();
        assert_eq!(seen, pushes);
    }

    #[test]
    fn a_refused_pusher_sees_what_the_owner_did_before_it_closed() {
        loom::model(|| refused(1));
    }

    #[test]
    fn a_pusher_that_is_refused_at_its_second_block_sees_it_too() {
        loom::model(|| refused(2));
    }

    /// While one thread pushes and the owner takes and exits, another takes for the owner, and puts back what it can.
    #[test]
    fn what_another_thread_takes_and_puts_back_is_seen_once() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new());
            let others = [Arc::clone(&inbox), Arc::clone(&inbox)];
            let [pusher, taker] = others;
            let pusher = loom::thread::spawn(move || send(&pusher) + send(&pusher));
            let taker = loom::thread::spawn(move || {
                let taken = taker.take_for_owner();
                if taken.is_null() || taker.put_back(taken) { 0 } else { use_up(taken) }
            });
            let mut seen = use_up(inbox.take()) + use_up(inbox.close());
            seen += pusher.join().unwrap() + taker.join().unwrap();
            assert_eq!(seen, 2);
            assert!(inbox.take_for_owner().is_null(), "the inbox is still closed");
        });
    }

    /// The record is reused: its closed inbox is opened, and the next owner gets what is pushed.
    #[test]
    fn an_inbox_that_is_opened_again_loses_nothing() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::new());
            let other = Arc::clone(&inbox);
            let pusher = loom::thread::spawn(move || send(&other));
            let mut seen = use_up(inbox.close());
            inbox.open();
            seen += use_up(inbox.take());
            seen += pusher.join().unwrap();
            seen += use_up(inbox.take());
            assert_eq!(seen, 1);
        });
    }
}
