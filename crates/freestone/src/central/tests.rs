#![allow(unsafe_code)]
//! The lists alone, without thread heaps: the tests own the spans they abandon.
use super::*;
use crate::config::key;
use crate::size_class::{class_of, span_pages};
use crate::span::Kind;
use crate::testing::{World, span_at};
use freestone_base::units::{PAGE_BYTES, Pages};
use std::collections::BTreeSet;
use std::vec::Vec;

const OS_PAGE_BYTES: usize = 4096;

/// A stand-in for the record of the heap that adopts.
fn adopter() -> *mut c_void {
    ptr::dangling_mut::<c_void>()
}

/// A small span of the test's, and all blocks of it that are out.
struct OwnSpan {
    page: PageIndex,
    class: usize,
    blocks: Vec<*mut Node>,
}

/// Takes `n_out` blocks, or all there are, out of a new span of `class`.
fn span_with(world: &World, class: usize, n_out: usize) -> OwnSpan {
    let run =
        world.shared.pages.allocate(span_pages(class), Pages(1), Kind::Small).expect("the fake kernel has memory");
    let span = span_at(world, run.page);
    blocks::format(&span, class, OS_PAGE_BYTES, !run.zero);
    world.shared.pages.uncarved.add(blocks::uncarved_bytes(&span, OS_PAGE_BYTES));
    span.records().iter().for_each(|record| record.first.store(run.page.0, Ordering::Relaxed));
    span.owner.store(adopter(), Ordering::Relaxed);
    span.set_entries(Entry::small(Generation::FIRST, class as u8));
    let mut blocks = Vec::new();
    // At least one OS page is carved, so that the span has free blocks unless all are out.
    loop {
        let carved = links(blocks::carve(&span, 1, 0, OS_PAGE_BYTES, LinkKey::PLAIN, &world.shared.pages.uncarved));
        let is_carved = carved.is_empty();
        blocks.extend(carved);
        if is_carved || blocks.len() >= n_out {
            break;
        }
    }

    let home = Home::of(span);
    for block in blocks.drain(n_out.min(blocks.len())..) {
        // SAFETY: the block was carved from this span just now, and is the test's.
        assert_eq!(unsafe { home.give_back(block, LinkKey::PLAIN) }, Ok(()));
        world.shared.usage.add_free_in_spans(block_bytes(class) as i64);
    }
    OwnSpan { page: run.page, class, blocks }
}

/// The blocks of a chain that is the test's.
fn links(chain: Chain) -> Vec<*mut Node> {
    let mut blocks = Vec::new();
    let mut block = chain.first;
    for _ in 0..chain.len {
        blocks.push(block);
        // SAFETY: the block is in the chain, which is the test's: its first word links to the next.
        block = unsafe { (*block).next };
    }
    blocks
}

fn abandon(world: &World, span: &OwnSpan) {
    world.shared.central.abandon(&world.shared.pages, &world.shared.usage, span_at(world, span.page));
}

fn adopt(world: &World, class: usize) -> Option<PageIndex> {
    let adopted =
        world.shared.central.adopt(&world.shared.pages, &world.shared.usage, class, adopter(), Generation::FIRST);
    adopted.map(|span| span.page())
}

fn free(world: &World, span: &OwnSpan, block: *mut Node) -> FreeOutcome {
    // SAFETY: the block lies in the span; if it is one that is out, it is the test's.
    unsafe { world.shared.central.free(&world.shared.pages, &world.shared.usage, span.page, span.class, block) }
}

/// Spans of a class without an owner, all of whose blocks are out.
fn abandoned_spans(world: &World, class: usize, n: usize) -> Vec<OwnSpan> {
    let spans: Vec<_> = (0..n).map(|_| span_with(world, class, usize::MAX)).collect();
    spans.iter().for_each(|span| abandon(world, span));
    spans
}

/// Frees a block that is out of a span without an owner.
fn free_out(world: &World, span: &OwnSpan, block: *mut Node) {
    assert_eq!(free(world, span, block), FreeOutcome::Freed);
}

fn small_pages(world: &World) -> u64 {
    world.shared.pages.stats().small_pages
}

/// The listed spans of a class, and whether each is listed as full.
fn listed(world: &World, class: usize) -> Vec<(PageIndex, bool)> {
    let mut listed = Vec::new();
    world.shared.central.inspect(world.shared.pages.layout(), class, |page, _, is_full| listed.push((page, is_full)));
    listed
}

#[test]
fn an_abandoned_span_is_adopted_once_and_only_for_its_class() {
    let world = World::new(OS_PAGE_BYTES);
    let span = span_with(&world, class_of(1024), 3);
    abandon(&world, &span);
    assert_eq!(world.check(), Ok(()));
    assert_eq!(adopt(&world, span.class + 1), None);
    assert_eq!(adopt(&world, span.class), Some(span.page));
    let adopted = span_at(&world, span.page);
    assert_eq!(adopted.owner.load(Ordering::Relaxed), adopter());
    assert_eq!(adopted.entry(0).generation(), Generation::FIRST);
    assert_eq!((adopt(&world, span.class), listed(&world, span.class)), (None, Vec::new()));
}

#[test]
fn an_abandoned_span_says_so_in_the_page_map() {
    let world = World::new(OS_PAGE_BYTES);
    let span = span_with(&world, class_of(32 << 10), 1);
    abandon(&world, &span);
    for at in 0..span_pages(span.class).0 {
        let entry = span_at(&world, span.page).entry(at);
        assert!(entry.generation() == Generation::ABANDONED && entry.class() == Some(span.class));
    }
}

#[test]
fn a_span_with_no_block_out_goes_to_the_page_heap_when_it_is_abandoned() {
    let world = World::new(OS_PAGE_BYTES);
    world.set(key::DIRTY_MAX, "0");
    let span = span_with(&world, class_of(1024), 0);
    assert!(world.shared.usage.exceeds_bound_in_spans(world.shared.settings(), false));
    abandon(&world, &span);
    assert_eq!((small_pages(&world), listed(&world, span.class)), (0, Vec::new()));
    // What was free in the span is no longer counted.
    assert!(!world.shared.usage.exceeds_bound_in_spans(world.shared.settings(), false));
    assert_eq!(world.check(), Ok(()));
}

#[test]
fn a_full_span_is_adopted_only_after_a_block_of_it_was_freed() {
    let world = World::new(OS_PAGE_BYTES);
    let span = span_with(&world, class_of(2048), usize::MAX);
    abandon(&world, &span);
    assert_eq!((listed(&world, span.class), adopt(&world, span.class)), (std::vec![(span.page, true)], None));
    assert_eq!(free(&world, &span, span.blocks[0]), FreeOutcome::Freed);
    assert_eq!(listed(&world, span.class), [(span.page, false)]);
    assert_eq!(world.check(), Ok(()));
    assert_eq!(adopt(&world, span.class), Some(span.page));
}

#[test]
fn a_span_goes_to_the_page_heap_with_its_last_block_from_either_list() {
    for &n_out in if cfg!(miri) { &[2][..] } else { &[1, 2, usize::MAX] } {
        let world = World::new(OS_PAGE_BYTES);
        // With all its blocks out, the span is full at first.
        let span = span_with(&world, class_of(16 << 10), n_out);
        abandon(&world, &span);
        for (at, &block) in span.blocks.iter().enumerate() {
            assert!(small_pages(&world) > 0, "{at} of {} blocks were freed", span.blocks.len());
            assert_eq!(free(&world, &span, block), FreeOutcome::Freed);
            assert_eq!(world.check(), Ok(()));
        }
        assert_eq!((small_pages(&world), listed(&world, span.class)), (0, Vec::new()));
        assert_eq!(adopt(&world, span.class), None);
        assert_eq!(world.shared.usage.left_out(span.class), 0);
    }
}

#[test]
fn an_address_that_is_no_allocated_block_is_refused_and_changes_nothing() {
    let world = World::new(OS_PAGE_BYTES);
    let span = span_with(&world, class_of(1024), 5);
    abandon(&world, &span);
    assert_eq!(free(&world, &span, span.blocks[0]), FreeOutcome::Freed);
    assert_eq!(free(&world, &span, span.blocks[0]), FreeOutcome::Refused(Refused::FreeAlready));
    let inside = span.blocks[1].wrapping_byte_add(16);
    assert_eq!(free(&world, &span, inside), FreeOutcome::Refused(Refused::NotABlock));
    assert_eq!(world.shared.usage.left_out(span.class), 4);
    assert_eq!(world.check(), Ok(()));
}

#[test]
fn a_block_of_a_span_that_has_an_owner_is_not_touched() {
    let world = World::new(OS_PAGE_BYTES);
    let span = span_with(&world, class_of(1024), 2);
    abandon(&world, &span);
    assert_eq!(adopt(&world, span.class), Some(span.page));
    let n_out = || span_at(&world, span.page).n_out.get();
    let before = n_out();
    assert_eq!(free(&world, &span, span.blocks[0]), FreeOutcome::Adopted);
    assert_eq!((n_out(), world.shared.usage.left_out(span.class)), (before, 0));
}

/// Too few for a call of their own wait until all classes are looked through.
#[test]
fn os_pages_of_abandoned_spans_go_back_together_once_too_much_is_free_in_spans() {
    for (dirty_max, is_purged) in [("0", true), ("1g", false)] {
        let world = World::new(OS_PAGE_BYTES);
        world.set(key::DIRTY_MAX, dirty_max);
        let class = class_of(1024);
        let spans = abandoned_spans(&world, class, 2);
        let purged_pages = || world.shared.pages.stats().purged_bytes / OS_PAGE_BYTES as u64;
        let mut before = purged_pages();
        // All blocks but the first, which keeps the span where it is.
        for (span, &block) in spans.iter().flat_map(|span| span.blocks[1..].iter().map(move |block| (span, block))) {
            free_out(&world, span, block);
            let together = purged_pages() - before;
            assert!(together == 0 || (is_purged && together >= u64::from(EMPTIED_AT_ONCE) / 2), "{together}");
            before += together;
        }
        assert_eq!(before > 0, is_purged, "dirty_max={dirty_max}");
        world.shared.release_in_spans();
        let of_all = spans.iter().map(|span| span.blocks.len() * 1024 / OS_PAGE_BYTES - 1).sum::<usize>();
        assert_eq!(purged_pages(), if is_purged { of_all as u64 } else { 0 }, "dirty_max={dirty_max}");
        assert_eq!(world.check(), Ok(()));
    }
}

/// What has become too much at once goes back a part at a time: one free of many gives back no more than that, nor do the frees that follow it.
#[test]
#[cfg_attr(miri, ignore = "frees 70,000 blocks")]
fn no_free_gives_back_all_that_has_become_too_much() {
    let world = World::new(OS_PAGE_BYTES);
    world.set(key::DIRTY_MAX, "1g");
    let (class, n_spans) = (class_of(1024), 1100);
    let spans = abandoned_spans(&world, class, n_spans);
    // All but one of the first and one of the last OS page.
    for span in &spans {
        span.blocks[1..span.blocks.len() - 1].iter().for_each(|&block| free_out(&world, span, block));
    }
    world.set(key::DIRTY_MAX, "0");
    let (mut most, mut n_purges) = (0, 0);
    for span in &spans {
        let purged = world.purged_by(|| free_out(&world, span, span.blocks[span.blocks.len() - 1]));
        (most, n_purges) = (most.max(purged), n_purges + usize::from(purged > 0));
    }
    assert!(most as i64 <= FREED_AT_ONCE + PAGE_BYTES as i64, "{most} bytes at once");
    assert!((most as i64) > FREED_AT_ONCE / 2 && n_purges <= n_spans / EMPTIED_AT_ONCE as usize, "{n_purges} frees");
    (0..8).for_each(|_| world.shared.release_in_spans());
    let of_all = n_spans * (span_pages(class).to_bytes().0 / OS_PAGE_BYTES - 1);
    assert_eq!(world.shared.pages.stats().purged_bytes as usize / OS_PAGE_BYTES, of_all);
    assert_eq!(world.check(), Ok(()));
}

/// Where nothing can go back, a free looks at some spans, and the frees that follow at others.
#[test]
#[cfg_attr(miri, ignore = "frees 30,000 blocks")]
fn no_free_looks_at_all_spans() {
    let world = World::new(OS_PAGE_BYTES);
    world.set(key::DIRTY_MAX, "0");
    let (class, in_os_page) = (class_of(1024), OS_PAGE_BYTES / 1024);
    let spans = abandoned_spans(&world, class, 600);
    // Of each OS page one block stays.
    for span in &spans {
        span.blocks
            .iter()
            .enumerate()
            .filter(|(at, _)| at % in_os_page > 0)
            .for_each(|(_, &block)| free_out(&world, span, block));
    }
    let n_freed = || spans.iter().filter(|span| span_at(&world, span.page).listed.get() == Listed::Freed).count();
    let emptied = spans
        .iter()
        .flat_map(|span| span.blocks[in_os_page..].iter().step_by(in_os_page).map(move |&block| (span, block)));
    let (mut before, mut n_looks) = (n_freed(), 0);
    assert_eq!(before, spans.len());
    for (span, block) in emptied.take(8 * EMPTIED_AT_ONCE as usize) {
        free_out(&world, span, block);
        let looked = before.saturating_sub(n_freed());
        assert!(looked as i64 <= FREED_AT_ONCE / LOOK_BYTES, "{looked} spans at once");
        (before, n_looks) = (n_freed(), n_looks + usize::from(looked > 0));
    }
    assert!(n_looks >= 2 && before < 20, "{n_looks} looks, {before} left");
    assert_eq!(world.check(), Ok(()));
}

/// Each of a thousand threads that end would look through the same spans.
#[test]
fn one_thread_in_a_decay_time_has_os_pages_of_all_classes_go_back() {
    let lists = CentralLists::new();
    let begins = [0, 5, 100, 101, 150, 201].map(|now_ms| lists.begin_sweep(now_ms, 100));
    assert_eq!(begins, [true, false, false, true, false, true]);
    assert!(lists.begin_sweep(u32::MAX, 100) && !lists.begin_sweep(50, 100) && lists.begin_sweep(99, 100));
}

/// Keeps blocks as orphaned ones, `n` at a time.
fn keep_orphaned(world: &World, class: usize, blocks: &[*mut Node], n: usize) {
    for blocks in blocks.chunks(n) {
        let mut chain = Chain::EMPTY;
        for &block in blocks {
            // SAFETY: the block is the test's.
            unsafe { chain.push(block, LinkKey::PLAIN) };
        }
        // SAFETY: as above.
        unsafe { world.shared.central.keep_orphaned(class, chain, LinkKey::PLAIN) };
    }
}

#[test]
fn orphaned_blocks_are_all_handed_out_again_once() {
    let world = World::new(OS_PAGE_BYTES);
    let class = class_of(64);
    let span = span_with(&world, class, 7);
    for n in 1..8 {
        keep_orphaned(&world, class, &span.blocks, n);
        assert_eq!(world.shared.central.take_orphaned(class + 1).len, 0);
        let taken = world.shared.central.take_orphaned(class);
        assert_eq!(Some(&taken.last), links(taken).last());
        let taken = links(taken);
        assert_eq!(taken.len(), 7);
        assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), span.blocks.iter().copied().collect());
        assert_eq!(world.shared.central.take_orphaned(class).len, 0);
    }
}

#[test]
fn a_thread_does_not_wait_for_orphaned_blocks() {
    let world = World::new(OS_PAGE_BYTES);
    let span = span_with(&world, class_of(64), 1);
    keep_orphaned(&world, span.class, &span.blocks, 1);
    let lists = world.shared.central.classes[span.class].lock();
    assert_eq!(world.shared.central.take_orphaned(span.class).len, 0);
    drop(lists);
    assert_eq!(world.shared.central.take_orphaned(span.class).len, 1);
}

#[test]
fn the_locks_are_held_from_before_a_fork_until_after_it() {
    let world = World::new(OS_PAGE_BYTES);
    let central = &world.shared.central;
    let classes = || central.classes.iter().map(|class| class.try_lock().is_some());
    let is_free = || classes().chain([central.orphan.try_lock().is_some()]).collect::<BTreeSet<_>>();
    assert_eq!(is_free(), BTreeSet::from([true]));
    world.shared.lock_for_fork();
    assert_eq!(is_free(), BTreeSet::from([false]));
    // SAFETY: this thread took the locks in the line before the last.
    world.shared.unlock_after_fork(unsafe { Forker::new() });
    assert_eq!(is_free(), BTreeSet::from([true]));
}
