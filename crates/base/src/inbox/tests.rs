#![allow(unsafe_code)]
extern crate std;
use super::*;
use std::boxed::Box;
use std::vec::Vec;

fn node() -> *mut Node {
    Box::into_raw(Box::new(Node { next: ptr::null_mut() }))
}

/// Frees a chain and returns its length.
fn consume(mut chain: *mut Node) -> usize {
    let mut len = 0;
    while !chain.is_null() {
        // SAFETY: every node was made by `node` and is taken once.
        let node = unsafe { Box::from_raw(chain) };
        chain = node.next;
        len += 1;
    }
    len
}

#[cfg(not(loom))]
#[test]
fn what_is_pushed_is_taken_once_newest_first() {
    let inbox = Inbox::new();
    let nodes: Vec<_> = (0..3).map(|_| node()).collect();
    for &node in &nodes {
        // SAFETY: a chain of one that is ours.
        assert!(unsafe { inbox.push(node, node) });
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
    unsafe {
        assert!(inbox.push(node, node));
        assert_eq!(inbox.close(), node);
        assert!(!inbox.push(node, node));
        assert!(inbox.take().is_null() && inbox.close().is_null());
        inbox.open();
        assert!(inbox.push(node, node));
    }
    assert_eq!(consume(inbox.take()), 1);
}

/// Two threads hand blocks over while the owner drains and then dies: each block is seen exactly once.
#[cfg(loom)]
#[test]
fn every_block_reaches_the_owner_or_stays_with_its_pusher() {
    use std::sync::Arc;
    loom::model(|| {
        let inbox = Arc::new(Inbox::new());
        let pushers: Vec<_> = (0..2)
            .map(|_| {
                let inbox = Arc::clone(&inbox);
                loom::thread::spawn(move || {
                    let node = node();
                    // SAFETY: a chain of one that is ours.
                    if unsafe { inbox.push(node, node) } { 0 } else { consume(node) }
                })
            })
            .collect();
        let mut seen = consume(inbox.take());
        seen += consume(inbox.close());
        seen += pushers.into_iter().map(|pusher| pusher.join().unwrap()).sum::<usize>();
        assert_eq!(seen, 2);
        assert!(inbox.is_empty());
    });
}

/// A block in transit while its span is abandoned: the pusher either finds the inbox open, and the closer passes the block
/// on, or is refused, and then sees that the span has no owner any more.
#[cfg(loom)]
#[test]
fn a_refused_pusher_sees_what_the_owner_did_before_it_closed() {
    use crate::sync::AtomicU32;
    use std::sync::Arc;
    loom::model(|| {
        let shared = Arc::new((Inbox::new(), AtomicU32::new(7)));
        let other = Arc::clone(&shared);
        let pusher = loom::thread::spawn(move || {
            let node = node();
            // SAFETY: a chain of one that is ours.
            if unsafe { other.0.push(node, node) } {
                return 0;
            }
            assert_eq!(other.1.load(Ordering::Relaxed), 0, "refused before the span was abandoned");
            consume(node)
        });
        shared.1.store(0, Ordering::Relaxed);
        let seen = consume(shared.0.close()) + pusher.join().unwrap();
        assert_eq!(seen, 1);
    });
}
