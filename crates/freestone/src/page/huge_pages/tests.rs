#![allow(unsafe_code)]
use super::*;
use crate::config::key;
use crate::page::tests::{MIB, dirty_bytes, take_run};
use crate::span::Kind;
use crate::testing::{World, free};
use crate::thread::heap::own::Own;
use freestone_base::units::PAGE_BYTES_LOG2;
use freestone_os::Errno;
use freestone_os::fake::{Failure, Fake};
use std::vec::Vec;

const HUGE_BYTES: usize = 2 << 20;

/// Whether a run is marked as one with a request for huge pages.
fn has_marks(world: &World) -> bool {
    world.shared.pages.inspect(|state| state.runs.iter().any(|(_, run)| run.is_huge.get()))
}

#[test]
fn dense_large_blocks_get_huge_pages_and_the_request_is_withdrawn_with_the_memory() {
    let world = World::new(4096);
    world.os().give_huge_pages(HUGE_BYTES);
    let heap = world.heap();
    free(heap, heap.allocate(9 * MIB, 1).start);
    assert_eq!(world.os().huge_bytes(), 0, "none was seen to be dense");
    let block = heap.allocate(9 * MIB, 1).start;
    assert_eq!(block.addr() % HUGE_BYTES, 0);
    let in_block = heap.usable_bytes(block).expect("the block is allocated");
    assert_eq!(
        (in_block, world.os().huge_bytes()),
        (10 * MIB, 8 * MIB),
        "rounded up to whole huge pages; the last is none"
    );
    free(heap, block);
    assert!(has_marks(&world));
    world.shared.pages.purge();
    assert_eq!((world.os().huge_bytes(), has_marks(&world)), (0, false));
    assert_eq!(heap.allocate(MIB, 1).start.addr() % (1 << PAGE_BYTES_LOG2), 0);
    assert_eq!(world.os().huge_bytes(), 0, "small ones get none");
    world.check().unwrap();
}

/// The fake kernel, like the real one, is only asked about whole OS pages.
#[test]
fn density_is_sampled_at_the_start_of_os_pages_of_any_size() {
    for os_page_log2 in 12..=PAGE_BYTES_LOG2 {
        let world = World::new(1 << os_page_log2);
        world.os().give_huge_pages(HUGE_BYTES);
        world.os().say_resident(false);
        world.shared.pages.take_blocks_for_dense();
        let heap = world.heap();
        let block = heap.allocate(68 << PAGE_BYTES_LOG2, 1).start;
        assert_eq!(world.os().huge_bytes(), HUGE_BYTES);
        free(heap, block);
        world.shared.pages.purge();
        let _ = heap.allocate(68 << PAGE_BYTES_LOG2, 1);
        assert_eq!(world.os().huge_bytes(), 0, "it was found empty");
    }
}

/// The fake kernel says that nothing is resident: as if no block was ever written.
#[test]
fn programs_of_sparse_blocks_get_huge_pages_for_one_of_them_and_only_after_dense_ones() {
    for was_dense in [false, true] {
        let world = World::new(4096);
        world.os().give_huge_pages(HUGE_BYTES);
        world.os().say_resident(false);
        if was_dense {
            world.shared.pages.take_blocks_for_dense();
        }
        let heap = world.heap();
        let blocks: Vec<_> = (0..4).map(|_| heap.allocate(8 * MIB, 1).start).collect();
        assert_eq!(world.os().huge_bytes(), if was_dense { 6 * MIB } else { 0 });
        blocks.into_iter().for_each(|block| free(heap, block));
        world.check().unwrap();
    }
}

/// What has huge pages has memory as a whole as soon as a byte of it is written: its samples would say that it is dense.
#[test]
fn of_a_block_with_huge_pages_the_last_one_which_has_no_request_is_sampled() {
    let world = World::new(4096);
    world.give_huge_pages(HUGE_BYTES);
    let block = take_run(&world, 130);
    let extent = world.shared.pages.without_request(world.shared.pages.extent(&block), Pages(32));
    assert_eq!((extent.first, extent.pages), (block.page() + Pages(96), Pages(32)));
    assert!(world.shared.pages.record(&block).is_huge.get());
    assert_eq!(world.os().huge_bytes(), 3 * HUGE_BYTES);
}

#[test]
fn the_request_for_huge_pages_is_withdrawn_where_a_block_becomes_small_spans() {
    let world = World::new(4096);
    world.give_huge_pages(HUGE_BYTES);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let block = heap.allocate(8 * MIB, 1).start;
        assert_eq!(world.os().huge_bytes(), 6 * MIB);
        free(heap, block);
        assert_eq!((dirty_bytes(&world), world.os().huge_bytes()), (8 * MIB as u64, 6 * MIB));
        let small = loop {
            let small = heap.allocate(1000, 1).start;
            if (block..block.add(8 * MIB)).contains(&small) {
                break small;
            }
        };
        assert_eq!(world.os().huge_bytes(), 0, "a span at {small:?} would get huge pages");
        assert!(!has_marks(&world));
    }
    world.check().unwrap();
}

#[test]
fn a_block_that_takes_a_run_with_a_request_has_its_mark() {
    let world = World::new(4096);
    world.give_huge_pages(HUGE_BYTES);
    world.shared.pages.free(take_run(&world, 128));
    let block = take_run(&world, 128);
    assert!(has_marks(&world));
    world.shared.pages.free(block);
    world.shared.pages.purge();
    assert_eq!((world.os().huge_bytes(), has_marks(&world)), (0, false));
}

/// A later owner of the run withdraws it.
#[test]
fn a_run_stays_marked_where_the_request_could_not_be_withdrawn() {
    type End = fn(&World, Own<'_, Fake>);
    let ends: [End; 2] = [|world, _| _ = world.shared.pages.purge(), |_, heap| _ = heap.allocate(100, 1)];
    for end in ends {
        let world = World::new(4096);
        world.give_huge_pages(HUGE_BYTES);
        let heap = world.heap();
        world.shared.pages.free(take_run(&world, 128));
        world.os().plan(Some(Failure { nth_call: 0, errno: Errno::NOMEM, for_good: true }));
        end(&world, heap);
        assert!(has_marks(&world) && world.os().huge_bytes() == 3 * HUGE_BYTES);
        world.os().plan(None);
        world.shared.pages.free(take_run(&world, 128));
        world.shared.pages.purge();
        world.check().unwrap();
    }
}

#[test]
fn a_run_without_a_request_becomes_a_span_without_a_call_of_the_kernel() {
    let world = World::hardened(4096, "off");
    world.os().give_huge_pages(HUGE_BYTES);
    let [run, _wall] = [8, 1].map(|n| take_run(&world, n));
    world.shared.pages.free(run);
    world.os().plan(None);
    assert!(world.shared.pages.allocate(Pages(2), Pages(1), Kind::Small).is_some());
    assert_eq!(world.os().n_calls(), 0);
}

/// From a page on, and for the huge page before that, which had no request; but not for the last.
#[test]
fn huge_pages_are_requested_for_whole_ones_inside_the_block_from_a_page_on() {
    for (n_pages, from, expected) in [(128, 0, 3), (128, 40, 3), (128, 64, 2), (127, 96, 0), (127, 95, 1), (20, 0, 0)] {
        let world = World::new(4096);
        world.os().give_huge_pages(HUGE_BYTES);
        world.set(key::THP, "off");
        let run = world.shared.pages.allocate(Pages(n_pages), Pages(32), Kind::Large).unwrap();
        let block = OwnedRun::taken(Extent::new(run.page, run.pages));
        assert_eq!(world.os().huge_bytes(), 0);
        world.shared.pages.ask_for_huge_pages(&block, Pages(from));
        assert_eq!(world.os().huge_bytes(), expected * HUGE_BYTES, "{n_pages} pages from {from} on");
        assert_eq!(has_marks(&world), expected > 0);
    }
}

/// Another thread may switch the option on between the plan of a block and the request.
#[test]
fn no_huge_pages_are_requested_in_a_sandbox_that_was_switched_on_after_a_block_was_to_have_some() {
    let world = World::new(4096);
    world.os().give_huge_pages(HUGE_BYTES);
    world.set(key::THP, "off");
    let block = take_run(&world, 128);
    world.set(key::THP, "auto");
    world.set(key::SANDBOX, "on");
    world.shared.pages.ask_for_huge_pages(&block, Pages::ZERO);
    assert_eq!((world.os().huge_bytes(), has_marks(&world)), (0, false));
}

#[test]
fn an_extent_ends_with_its_last_huge_page_and_without_huge_pages_where_it_is() {
    for (huge_bytes, pages, expected) in [(HUGE_BYTES, 1, 32), (HUGE_BYTES, 32, 32), (HUGE_BYTES, 33, 64), (0, 33, 33)]
    {
        let world = World::new(4096);
        world.os().give_huge_pages(huge_bytes);
        let run = world.shared.pages.allocate(Pages(64), Pages(32), Kind::Large).unwrap();
        assert_eq!(world.shared.pages.to_huge_page_end(Extent::new(run.page, Pages(pages))), Pages(expected));
    }
}

#[test]
fn blocks_get_huge_pages_only_on_request_and_not_in_a_sandbox() {
    let wanted = |set: &[(usize, &str)]| {
        let world = World::new(4096);
        world.os().give_huge_pages(HUGE_BYTES);
        set.iter().for_each(|(index, value)| world.set(*index, value));
        [63, 64].map(|pages| world.shared.pages.huge_page_for(Pages(pages)))
    };
    assert_eq!(wanted(&[]), [None, Some(Pages(32))]);
    for option in [(key::THP, "on"), (key::THP, "off"), (key::SANDBOX, "on")] {
        assert_eq!(wanted(&[option]), [None, None], "{option:?}");
    }
}
