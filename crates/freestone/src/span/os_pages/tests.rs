#![allow(unsafe_code)]
use super::*;
use crate::size_class::{N_CLASSES, span_blocks};
use crate::span::record::Listed;
use crate::testing::World;
use crate::thread::upkeep;
use freestone_base::units::Pages;
use freestone_os::Os;
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
        // SAFETY: the heap and its blocks are this test's.
        unsafe {
            let all: Vec<*mut u8> = (0..n).map(|_| heap.allocate(size, 1).start).collect();
            let layout = *world.shared.pages.layout();
            let page = world.shared.pages.view().page_of(all[0].addr()).unwrap() as u32;
            let page = (*layout.record(page)).first.load(freestone_base::sync::Ordering::Relaxed);
            let span = &*layout.record(page);
            let (kept, gone): (Vec<_>, Vec<_>) = all.iter().partition(|block| block.addr() / 16384 % 2 == 0);
            for &&block in &kept {
                block.write_bytes(0x5A, size);
            }
            gone.iter().for_each(|&&block| heap.free(block));
            upkeep::flush_all(heap);
            let (free_before, mut purged) = (span.n_free.get(), 0);
            let released = release_pages(&layout, page, 4096, |start, bytes| {
                purged += bytes;
                world.os().purge(start, bytes).is_ok()
            });
            assert_eq!(span.n_free.get() + released, free_before);
            for &&block in &kept {
                assert!(
                    core::slice::from_raw_parts(block, size).iter().all(|&byte| byte == 0x5A),
                    "a live block was purged"
                );
            }
            assert!(size > 8192 || purged > 0, "class {class}: nothing was released");
            world.check().unwrap();
            let again: Vec<*mut u8> = (0..gone.len()).map(|_| heap.allocate(size, 1).start).collect();
            assert!(again.iter().all(|block| !kept.contains(&block)));
            again.into_iter().for_each(|block| heap.free(block));
            world.check().unwrap();
        }
    }
}

/// A span made of memory that was something else before holds OS pages that it never carved: they go with the empty ones, all but those
/// that a live block reaches into.
#[test]
fn os_pages_that_were_never_carved_are_released_too_if_they_have_memory() {
    for class in (0..N_CLASSES).step_by(if cfg!(miri) { 24 } else { 3 }) {
        let world = World::new(4096);
        let heap = world.heap();
        let (size, span_bytes) = (block_bytes(class), Pages(crate::size_class::span_pages(class).0).to_bytes().0);
        // SAFETY: the heap and its blocks are this test's.
        unsafe {
            let before = heap.allocate(span_bytes.max(freestone_base::units::PAGE_BYTES), 1).start;
            before.write_bytes(0xA5, span_bytes);
            heap.free(before);
            let block = heap.allocate(size, 1).start;
            block.write_bytes(0x5A, size);
            let layout = *world.shared.pages.layout();
            let page = world.shared.pages.view().page_of(block.addr()).unwrap() as u32;
            upkeep::flush_all(heap);
            let span = &*layout.record(page);
            assert!(span.fresh_has_memory.get(), "class {class}: the span is of fresh memory");
            let (mut purged, mut kept) = (0, 0);
            let release = |fails: bool, purged: &mut usize| {
                release_pages(&layout, page, 4096, |start, bytes| {
                    *purged += bytes;
                    !fails && world.os().purge(start, bytes).is_ok()
                })
            };
            release(true, &mut kept);
            assert!(span.fresh_has_memory.get(), "what the kernel kept is forgotten");
            release(false, &mut purged);
            let (first, last) = (block.addr() / 4096, (block.addr() + size - 1) / 4096);
            assert_eq!(purged, span_bytes - (last - first + 1) * 4096, "class {class}");
            assert!(
                core::slice::from_raw_parts(block, size).iter().all(|&byte| byte == 0x5A),
                "a live block was purged"
            );
            purged = 0;
            release(false, &mut purged);
            assert_eq!(purged, 0, "class {class}: purged twice");
            world.check().unwrap();
            heap.free(block);
        }
    }
}

#[test]
fn a_stretch_that_the_kernel_keeps_stays_free() {
    let world = World::new(4096);
    let heap = world.heap();
    // SAFETY: the heap and its blocks are this test's.
    unsafe {
        let all: Vec<*mut u8> = (0..64).map(|_| heap.allocate(1024, 1).start).collect();
        let layout = *world.shared.pages.layout();
        let page = world.shared.pages.view().page_of(all[0].addr()).unwrap() as u32;
        all.iter().skip(1).for_each(|&block| heap.free(block));
        upkeep::flush_all(heap);
        let free_before = (*layout.record(page)).n_free.get();
        assert_eq!(release_pages(&layout, page, 4096, |_, _| false), 0);
        assert_eq!((*layout.record(page)).n_free.get(), free_before);
        heap.free(all[0]);
    }
    world.check().unwrap();
}

/// After a burst of which every 20th block stays, the only OS pages without an allocated block are the few whose blocks are in bins.
#[test]
fn a_burst_leaves_no_os_page_without_a_block() {
    let world = World::new(4096);
    world.set(crate::config::key::DIRTY_MAX, "0");
    let heap = world.heap();
    for size in [96, 512, 1024, 4096] {
        // SAFETY: the heap and its blocks are this test's.
        unsafe {
            let n = if cfg!(miri) { 300 } else { (8 << 20) / size };
            let all: Vec<*mut u8> = (0..n).map(|_| heap.allocate(size, 1).start).collect();
            let (kept, gone): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(at, _)| at % 20 == 0);
            gone.iter().for_each(|&(_, &block)| heap.free(block));
            let layout = *world.shared.pages.layout();
            let mut idle = Vec::new();
            heap.spans().of(crate::size_class::class_of(size)).for_each(&layout, |page, listed| {
                let span = &*layout.record(page);
                let units = Units::of(span, 4096);
                let can_go = (0..units.len).filter(|&at| listed != Listed::No && units.can_go(&layout, page, at));
                idle.extend(
                    can_go.map(|at| (page, at, span.n_out.get(), span.n_free.get(), span.fresh.get().count_ones())),
                );
            });
            assert!(idle.len() <= 2, "{size}: {} {idle:?}", idle.len());
            kept.iter().for_each(|&(_, &block)| heap.free(block));
        }
    }
}
