#![allow(unsafe_code)]
use super::*;
use crate::config::key;
use crate::size_class::{N_CLASSES, class_of};
use crate::span::free_node;
use crate::testing::{World, fill, free, is_filled, span_of};
use crate::thread::drain::drain;
use crate::thread::heap::own::Own;
use crate::thread::idle::stretches::BesideEachOther;
use crate::thread::life::succession::Which;
use crate::thread::route;
use freestone_base::inbox::Node;
use freestone_os::fake::Fake;
use freestone_testkit::ops::SplitMix;

use std::ptr;
use std::vec::Vec;

mod again;
mod meanwhile;

/// Looks through the inboxes of all threads, whatever waits in them.
fn look(world: &World) {
    world.threads.purge_inboxes(&world.shared, Which::All, &|| false);
}

/// Looks through the inbox of one heap if it has `bytes_least`, calling `meanwhile` after each [`ASKED_EVERY`] blocks: it says whether to stop.
fn look_while(world: &World, heap: Own<'_, Fake>, bytes_least: usize, meanwhile: impl Fn() -> bool) {
    Look { shared: &world.shared, bytes_least, looking: &Looking::new(), is_ending: &meanwhile }
        .through(heap.heap().mailbox());
}

fn purged_bytes(world: &World) -> u64 {
    world.shared.pages.stats().purged_bytes
}

/// Blocks of `bytes`, filled with `byte`.
fn filled(heap: Own<'_, Fake>, n: usize, bytes: usize, byte: u8) -> Vec<*mut u8> {
    let blocks: Vec<_> = (0..n).map(|_| heap.allocate(bytes, 1).start).collect();
    blocks.iter().for_each(|&block| fill(block, byte, bytes));
    blocks
}

/// Frees blocks of another thread's, and hands them over.
fn free_all(heap: Own<'_, Fake>, blocks: &[*mut u8]) {
    blocks.iter().for_each(|&block| free(heap, block));
    route::send_all(heap);
}

/// Ends the heaps, which have no block out, and sees that no span is left.
fn end(world: &World, heaps: impl IntoIterator<Item = Own<'static, Fake>>) {
    heaps.into_iter().for_each(|heap| world.end(heap));
    world.check().unwrap();
    assert_eq!(world.small_span_pages(), 0, "a block was lost");
}

/// A world that lasts, with two heaps.
fn two(os_page_bytes: usize, level: &str) -> (&'static World, Own<'static, Fake>, Own<'static, Fake>) {
    let world: &'static World = std::boxed::Box::leak(std::boxed::Box::new(World::hardened(os_page_bytes, level)));
    (world, world.heap(), world.heap())
}

#[test]
fn the_memory_of_blocks_that_wait_goes_back_and_their_thread_takes_them_without_reading_them() {
    for level in ["off", "default"] {
        let (world, owner, other) = two(4096, level);
        let blocks = filled(owner, 4000, 500, 7);
        free_all(other, &blocks);
        let before = purged_bytes(world);
        look(world);
        let purged = purged_bytes(world) - before;
        assert!(purged > 3 * (4000 * 512) / 4, "{purged} bytes of 2 MB");
        assert!(owner.heap().mailbox().inbox().newest() == 0, "nothing was left");
        world.check().unwrap();
        let (in_bin, span_pages) = (owner.bins().len(class_of(500)), world.small_span_pages());
        drain(owner);
        assert_eq!(owner.accounts().unpublished_free(), 0);
        assert!(world.small_span_pages() < span_pages / 8, "spans without a block that is out go to the page heap");
        assert_eq!(owner.bins().len(class_of(500)), in_bin, "no bin got them");
        assert!(blocks.iter().any(|&block| is_filled(block, 0, 500)), "the fake kernel clears what it takes");
        world.check().unwrap();
        end(world, [owner, other]);
    }
}

#[test]
fn what_is_in_use_beside_them_stays_as_it_is() {
    let rounds = if cfg!(miri) { 4 } else { 150 };
    for seed in 0..rounds {
        let mut random = SplitMix(seed);
        let level = ["off", "default"][random.below(2)];
        let (world, owner, other) = two([4096, 16384][random.below(2)], level);
        let bytes = [16, 48, 112, 512, 1000, 4096, 5000, 8192, 20_000, 32_000];
        let mut held: Vec<(*mut u8, usize, u8)> = Vec::new();
        for step in 0..3 + random.below(5) {
            for _ in 0..1 + random.below(3) {
                let (bytes, byte) = (bytes[random.below(bytes.len())], 1 + random.below(255) as u8);
                let n = 1 + random.below(400_000 / bytes);
                held.extend(filled(owner, n, bytes, byte).into_iter().map(|block| (block, bytes, byte)));
            }
            // Mostly runs of neighbours are freed; sometimes single blocks.
            let keeps = [1, 2, 7, 100, 1000][random.below(5)];
            let (kept, freed): (Vec<_>, Vec<_>) =
                held.iter().enumerate().partition(|(at, _)| at / keeps % 3 == 0 || random.below(50 * keeps) == 0);
            let freed: Vec<_> = freed.into_iter().map(|(_, block)| block.0).collect();
            held = kept.into_iter().map(|(_, block)| *block).collect();
            free_all(other, &freed);
            look(world);
            world.check().unwrap();
            for &(block, bytes, byte) in &held {
                assert!(is_filled(block, byte, bytes), "seed {seed}, step {step}: a block of {bytes} bytes changed");
            }
            if random.below(2) == 0 {
                drain(owner);
                world.check().unwrap();
            }
        }
        let rest: Vec<_> = held.iter().map(|block| block.0).collect();
        free_all([owner, other][random.below(2)], &rest);
        end(world, [owner, other]);
    }
}

#[test]
fn a_stretch_does_not_go_on_in_the_next_span() {
    let (world, owner, other) = two(4096, "default");
    let blocks = filled(owner, 3000, 512, 7);
    let other_class = filled(owner, 200, 1024, 7);
    free_all(other, &[blocks.clone(), other_class.clone()].concat());
    look(world);
    let taken = owner.heap().mailbox().looked_through().take(owner.heap().mailbox().key());
    let (mut taken, view, mut n) = (taken, world.shared.pages.view(), 0);
    while let Some(found) = taken.pop(&view, owner.lookup().tag()) {
        match found {
            Found::Stretch(stretch) => {
                let (first, len) = (stretch.address(), stretch.len());
                let starts: Vec<_> =
                    stretch.into_blocks().map(|block| span_of(world, block.into_node().cast()).start()).collect();
                assert!(starts.iter().all(|start| *start == starts[0]), "{len} blocks from {first:#x}");
                n += len as usize;
            }
            Found::Own(_) => n += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(n, blocks.len() + other_class.len());
}

#[test]
fn few_blocks_are_left_where_they_are_until_more_come() {
    let (world, owner, other) = two(4096, "default");
    world.set(key::DECAY_MS, "10");
    let look_expired = || world.threads.purge_inboxes(&world.shared, Which::Expired, &|| false);
    let blocks = filled(owner, 2000, 512, 7);
    free_all(other, &blocks[..100]);
    assert!(look_expired(), "they may wait");
    world.os().advance_ms(10);
    let before = purged_bytes(world);
    assert!(!look_expired() && !look_expired(), "nobody waits for them");
    assert_eq!(purged_bytes(world), before);
    assert!(owner.heap().mailbox().inbox().newest() != 0);
    world.os().advance_ms(100);
    free_all(other, &blocks[100..]);
    assert!(look_expired());
    assert_eq!(purged_bytes(world), before, "not before the decay time is over");
    world.os().advance_ms(10);
    assert!(!look_expired());
    assert!(purged_bytes(world) - before > 900_000);
    end(world, [owner, other]);
}

#[test]
fn neighbours_that_come_at_different_times_go_together() {
    for drains in [false, true] {
        let (world, owner, other) = two(4096, "default");
        world.set(key::DECAY_MS, "0");
        let blocks = filled(owner, 4000, 512, 7);
        let parts: [Vec<_>; 4] = std::array::from_fn(|part| blocks.iter().skip(part).step_by(4).copied().collect());
        let before = purged_bytes(world);
        for part in &parts {
            assert_eq!((purged_bytes(world), owner.heap().mailbox().inbox().newest()), (before, 0));
            free_all(other, part);
            world.os().advance_ms(100);
            assert!(!world.threads.purge_inboxes(&world.shared, Which::Expired, &|| false));
        }
        let purged = purged_bytes(world) - before;
        assert!(purged > 3 * (4000 * 512) / 4, "{purged} bytes of 2 MB");
        if drains {
            drain(owner);
            world.check().unwrap();
        }
        end(world, [owner, other]);
    }
}

#[test]
fn blocks_that_may_have_been_free_before_are_left_to_their_thread() {
    let (world, owner, other) = two(4096, "default");
    let blocks = filled(owner, 6000, 512, 7);
    free_all(other, &blocks[1..]);
    // A program may write the mark: its thread finds that the block was not free.
    let mark = u64::from(free_node::MARK);
    // SAFETY: the block is this test's.
    unsafe { blocks[0].wrapping_add(free_node::MARK_OFFSET).cast::<u64>().write(mark) };
    free_all(other, &blocks[..1]);
    let before = purged_bytes(world);
    look(world);
    assert_eq!(purged_bytes(world), before);
    drain(owner);
    end(world, [owner, other]);
}

#[test]
fn blocks_that_waited_for_a_thread_that_a_fork_has_lost_are_handed_out_again() {
    let (world, owner, other) = two(4096, "default");
    let blocks = filled(owner, 3000, 512, 7);
    free_all(other, &blocks);
    look(world);
    world.orphan_others(other);
    let again: Vec<_> = (0..3000).map(|_| other.allocate(512, 1).start).collect();
    assert!(again.iter().filter(|block| blocks.contains(block)).count() > 2900);
    world.check().unwrap();
}

#[test]
fn without_address_space_for_the_bitmap_nothing_happens() {
    let (world, owner, other) = two(4096, "default");
    free_all(other, &filled(owner, 3000, 512, 7));
    let mailbox = owner.heap().mailbox();
    let newest = mailbox.inbox().newest();
    // What `through` does if the kernel has none.
    let blocks = mailbox.inbox().take_for_owner(|| mailbox.key());
    let look = Look { shared: &world.shared, bytes_least: 0, looking: &Looking::new(), is_ending: &|| false };
    look.put_back(mailbox, blocks);
    assert_eq!(mailbox.inbox().newest(), newest);
    end(world, [owner, other]);
}

#[test]
fn the_os_pages_of_a_stretch_leave_its_first_words_and_what_lies_beside_it() {
    let at = |start: usize, n, block| {
        let pages = BesideEachOther { first: ptr::without_provenance_mut(start), n, block }.os_pages(4096);
        (pages.bytes > 0).then(|| (pages.start.addr(), pages.bytes))
    };
    assert_eq!(at(0x10000, 128, 512), Some((0x11000, 0xF000)), "the page of the first block's words stays");
    assert_eq!(at(0x10FF0, 300, 16), Some((0x11000, 0x1000)), "the words end where the page does");
    assert_eq!(at(0x10FE0, 128, 32), None);
    assert_eq!(at(0x10800, 1, 20_480), Some((0x11000, 0x4000)), "a single block");
    assert_eq!(at(0x10000, 1, 4096), None);
    let classes = (0..N_CLASSES).map(block_bytes);
    assert!(classes.filter(|block| *block <= 4096).all(|block| at(0x10000, 1, block).is_none()));
}

#[test]
fn a_stretch_that_the_program_has_overwritten_is_reported_and_followed_no_further() {
    for level in ["off", "default"] {
        let (world, owner, other) = two(4096, level);
        world.set(key::MISUSE, "report");
        let blocks = filled(owner, 300, 512, 7);
        free_all(other, &blocks);
        look(world);
        let mailbox = owner.heap().mailbox();
        let (view, tag) = (world.shared.pages.view(), owner.lookup().tag());
        let mut taken = mailbox.looked_through().take(mailbox.key());
        let marked = |node: *mut Node| {
            // SAFETY: the block lies in a span of the heap.
            unsafe { free_node::marked(node) }
        };
        let first =
            blocks.iter().map(|block| block.cast::<Node>()).find(|node| matches!(marked(*node), Marked::Stretch(_)));
        let first = first.expect("a stretch");
        // SAFETY: the block is the test's.
        unsafe { free_node::mark_stretch(first, 1 << 20) };
        let found = std::iter::from_fn(|| taken.pop(&view, tag)).find(|found| matches!(found, Found::Wrong(..)));
        assert!(matches!(found, Some(Found::Wrong(_, address)) if address == first.addr()), "{found:?}");
        assert!(taken.is_empty());
    }
}

#[test]
fn what_waits_for_a_watched_heap_is_left_to_it() {
    for level in ["checks", "full"] {
        let (world, owner, other) = two(4096, level);
        free_all(other, &filled(owner, 4000, 500, 7));
        let (before, newest) = (purged_bytes(world), owner.heap().mailbox().inbox().newest());
        look(world);
        assert!(newest != 0 && owner.heap().mailbox().inbox().newest() == newest);
        assert_eq!(purged_bytes(world), before);
        end(world, [owner, other]);
    }
}
