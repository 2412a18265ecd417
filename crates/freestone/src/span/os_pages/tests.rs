use super::*;
use crate::central;
use crate::size_class::{N_CLASSES, span_blocks};
use crate::span::record::Listed;
use crate::testing::{World, fill, free, is_filled, span_at, span_of};
use crate::thread::upkeep;
use freestone_os::Errno;
use freestone_os::fake::Failure;
use std::collections::BTreeSet;
use std::vec::Vec;

/// Every second block of a class is freed, then the rest of some OS pages: exactly the pages without an allocated block are released,
/// live blocks keep their contents, and released blocks can be carved again.
#[test]
fn only_os_pages_without_a_block_that_is_out_are_released() {
    for class in (0..N_CLASSES).step_by(if cfg!(miri) { 24 } else { 5 }) {
        let world = World::new(4096);
        let heap = world.heap();
        let size = block_bytes(class);
        let n = span_blocks(class);
        let all: Vec<*mut u8> = (0..n).map(|_| heap.allocate(size, 1).start).collect();
        let span = span_of(&world, all[0]);
        let (kept, gone): (Vec<*mut u8>, Vec<_>) = all.into_iter().partition(|block| block.addr() / 16384 % 2 == 0);
        kept.iter().for_each(|&block| fill(block, 0x5A, size));
        gone.iter().for_each(|&block| free(heap, block));
        upkeep::flush_all(heap);
        let free_before = span.n_free.get();
        let (released, purged) = release(&world, &span);
        assert_eq!(span.n_free.get() + released, free_before);
        heap.accounts().add_free(class, -i64::from(released));
        assert!(kept.iter().all(|&block| is_filled(block, 0x5A, size)), "a live block was purged");
        assert!(size > 8192 || purged > 0, "class {class}: nothing was released");
        world.check().unwrap();
        let again: Vec<*mut u8> = (0..gone.len()).map(|_| heap.allocate(size, 1).start).collect();
        let kept: BTreeSet<_> = kept.into_iter().collect();
        assert!(again.iter().all(|block| !kept.contains(block)));
        again.into_iter().for_each(|block| free(heap, block));
        world.check().unwrap();
    }
}

/// Releases the OS pages of a span, and gives them back. Returns how many blocks are free no longer, and the bytes that went, which the page heap counts.
fn release(world: &World, span: &OwnedSpan<'_>) -> (u32, u64) {
    let counts = || (world.os().purged_bytes(), world.shared.pages.stats().purged_bytes);
    let (before, mut stretches) = (counts(), EmptyStretches::new());
    let released = central::release_os_pages(&world.shared.pages, span, &mut stretches);
    world.shared.pages.purge_inside(&mut stretches);
    assert!(stretches.ranges().is_empty());
    let after = counts();
    assert_eq!(after.0 - before.0, after.1 - before.1);
    (released, after.0 - before.0)
}

/// Makes the kernel keep everything, or take it again.
fn refuse(world: &World, all: bool) {
    world.os().plan(all.then_some(Failure { nth_call: 0, errno: Errno::AGAIN, for_good: true }));
}

/// A span made of memory that was something else before holds OS pages that it never carved: they go with the empty ones, all but those
/// that a live block reaches into.
#[test]
fn os_pages_that_were_never_carved_are_released_too_if_they_have_memory() {
    for class in (0..N_CLASSES).step_by(if cfg!(miri) { 24 } else { 3 }) {
        let world = World::new(4096);
        let heap = world.heap();
        // Among few heaps the first span of a class would take clean memory.
        (0..4).for_each(|_| _ = world.heap());
        let (size, span_bytes) = (block_bytes(class), crate::size_class::span_pages(class).to_bytes().0);
        let before = heap.allocate(span_bytes.max(freestone_base::units::PAGE_BYTES), 1).start;
        fill(before, 0xA5, span_bytes);
        free(heap, before);
        let block = heap.allocate(size, 1).start;
        fill(block, 0x5A, size);
        let span = span_of(&world, block);
        upkeep::flush_all(heap);
        assert!(span.fresh_has_memory.get(), "class {class}: the span is of fresh memory");
        refuse(&world, true);
        let (released, _) = release(&world, &span);
        heap.accounts().add_free(class, -i64::from(released));
        assert!(span.fresh_has_memory.get(), "what the kernel kept is forgotten");
        refuse(&world, false);
        let (first, last) = (block.addr() / 4096, (block.addr() + size - 1) / 4096);
        let expected = (0, (span_bytes - (last - first + 1) * 4096) as u64);
        assert_eq!(release(&world, &span), expected, "class {class}");
        assert!(is_filled(block, 0x5A, size), "a live block was purged");
        assert_eq!(release(&world, &span), (0, 0), "class {class}: purged twice");
        world.check().unwrap();
        free(heap, block);
    }
}

/// Every second OS page of a long span goes back. What the kernel keeps is uncarved all the same, and goes the next time.
#[test]
fn stretches_that_the_kernel_keeps_are_uncarved_and_go_the_next_time() {
    let failure = |for_good| Failure { nth_call: 0, errno: Errno::AGAIN, for_good };
    // Of 32 it takes none; or half of them, and with the next call the others; or half of those that are left, again and again.
    let plans = [(false, failure(true), 0), (true, failure(false), 32), (true, failure(true), 31)];
    for (half_way, failure, n_gone) in plans {
        let world = World::new(4096);
        world.set(crate::config::key::SPAN_SIZE, "256k");
        let heap = world.heap();
        let blocks: Vec<*mut u8> = (0..64).map(|_| heap.allocate(4096, 1).start).collect();
        let span = span_of(&world, blocks[0]);
        blocks.iter().skip(1).step_by(2).for_each(|&block| free(heap, block));
        upkeep::flush_all(heap);
        let free_before = span.n_free.get();
        assert_eq!(free_before, 32);
        if half_way {
            world.os().plan_half_way(failure);
        } else {
            world.os().plan(Some(failure));
        }
        assert_eq!(release(&world, &span), (free_before, n_gone * 4096));
        assert_eq!(span.n_free.get(), 0);
        assert!(!span.fresh_is_zero.get());
        assert_eq!(span.fresh_has_memory.get(), n_gone < 32);
        refuse(&world, false);
        // Which of them it kept is not known.
        assert_eq!(release(&world, &span), (0, if n_gone < 32 { 32 * 4096 } else { 0 }));
        assert!(!span.fresh_has_memory.get());
        heap.accounts().add_free(span.class.get() as usize, -i64::from(free_before));
        blocks.iter().step_by(2).for_each(|&block| free(heap, block));
        world.check().unwrap();
    }
}

/// After a burst of which every 20th block stays, the only OS pages without an allocated block are the few whose blocks are in bins.
#[test]
fn a_burst_leaves_no_os_page_without_a_block() {
    let world = World::new(4096);
    world.set(crate::config::key::DIRTY_MAX, "0");
    let heap = world.heap();
    for size in [96, 512, 1024, 4096] {
        let n = if cfg!(miri) { 300 } else { (8 << 20) / size };
        let all: Vec<*mut u8> = (0..n).map(|_| heap.allocate(size, 1).start).collect();
        let (kept, gone): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(at, _)| at % 20 == 0);
        gone.iter().for_each(|&(_, &block)| free(heap, block));
        // A sixteenth of the heap's spans may wait for others.
        crate::thread::returns::release_waiting(heap);
        let mut idle = Vec::new();
        heap.spans().of(crate::size_class::class_of(size)).for_each(heap.layout(), |page, listed| {
            let span = span_at(&world, page);
            let units = Units::of(&span, 4096);
            let can_go = (0..units.len).filter(|&at| listed != Listed::No && units.can_go(at));
            idle.extend(
                can_go.map(|at| (page, at, span.n_out.get(), span.n_free.get(), span.fresh.get().count_ones())),
            );
        });
        assert!(idle.len() <= 2, "{size}: {} {idle:?}", idle.len());
        kept.iter().for_each(|&(_, &block)| free(heap, block));
    }
}

/// The expected result of `has_emptied_a_page` for a free block, from a check of every block of the span.
fn has_emptied_a_page_slowly(span: &OwnedSpan<'_>, index: usize) -> bool {
    let (block, unit, n) = (block_bytes(span.class.get() as usize), carve_bytes(span, 4096), n_blocks(span));
    let is_fresh = |at: usize| span.fresh.get() >> at & 1 == 1;
    let is_out = |index: usize| !is_fresh(index * block / unit) && !is_free(span, index);
    let touches = |index: usize, at: usize| index * block < (at + 1) * unit && (index + 1) * block > at * unit;
    let is_empty = |at: usize| !(0..n).any(|other| touches(other, at) && is_out(other));
    let can_go = |at: usize| is_empty(at) && (!is_fresh(at) || span.fresh_has_memory.get());
    2 * span.n_out.get() as usize <= n && (0..span_bytes(span) / unit).any(|at| touches(index, at) && can_go(at))
}

#[test]
fn a_block_that_was_the_last_one_out_of_an_os_page_is_told_from_every_other() {
    let mut seed = 1_u64;
    let mut draw = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let (mut n_yes, mut n_no) = (0, 0);
    let (first, step, every, least) = if cfg!(miri) { (16, 20, 7, 3) } else { (0, 1, 1, 100) };
    for class in (first..N_CLASSES).step_by(step) {
        // Of each span one block in this many stays out: around the bound, and few.
        for sparseness in [2, 3, 12] {
            let world = World::new(4096);
            let heap = world.heap();
            let all: Vec<*mut u8> =
                (0..span_blocks(class)).map(|_| heap.allocate(block_bytes(class), 1).start).collect();
            let span = span_of(&world, all[0]);
            let (kept, gone): (Vec<_>, Vec<_>) =
                all.iter().enumerate().partition(|&(at, _)| at == 0 || draw(sparseness) == 0);
            gone.iter().for_each(|&(_, &block)| free(heap, block));
            upkeep::flush_all(heap);
            assert_eq!(is_mostly_free(&span), 2 * span.n_out.get() as usize <= n_blocks(&span));
            for index in (0..n_blocks(&span)).filter(|&index| is_free(&span, index)).step_by(every) {
                let expected = has_emptied_a_page_slowly(&span, index);
                assert_eq!(has_emptied_a_page(&span, index, 4096), expected, "class {class}, block {index}");
                *(if expected { &mut n_yes } else { &mut n_no }) += 1;
            }
            kept.iter().for_each(|&(_, &block)| free(heap, block));
        }
    }
    assert!(n_yes > least && n_no > least, "{n_yes} and {n_no} cases");
}
