use super::*;
use crate::size_class::class_of;
use crate::testing::{World, free, span_of};
use freestone_os::fake::Fake;
use std::string::String;

/// A heap that has a full, a partial and a current span of a class, a block in its bin, and a large block; and a block of the partial span.
fn heap(world: &World) -> (Own<'_, Fake>, *mut u8) {
    let heap = world.heap();
    let blocks: std::vec::Vec<_> = (0..200).map(|_| heap.allocate(1000, 1).start).collect();
    blocks[..20].iter().for_each(|&block| free(heap, block));
    crate::thread::upkeep::flush_all(heap);
    free(heap, blocks[30]);
    assert!(!heap.allocate(200_000, 1).start.is_null());
    assert_eq!(world.check(), Ok(()));
    (heap, blocks[0])
}

/// What is reported after the span of the block was changed.
fn report(change: impl FnOnce(&OwnedSpan<'_>)) -> String {
    let world = World::new(4096);
    let (_, block) = heap(&world);
    change(&span_of(&world, block));
    world.check().expect_err("the change breaks an invariant")
}

#[test]
fn counts_of_a_span_that_do_not_add_up_are_reported() {
    let wrong_out = report(|span| span.n_out.set(span.n_out.get() + 1));
    assert!(wrong_out.contains("free, out and fresh blocks are all blocks"), "{wrong_out}");
    let wrong_free = report(|span| span.n_free.set(span.n_free.get() - 1));
    assert!(wrong_free.contains("the bitmap has as many bits as counted"), "{wrong_free}");
}

#[test]
fn a_span_that_names_another_list_than_it_is_in_is_reported() {
    let said = report(|span| span.listed.set(Listed::Full));
    assert!(said.contains("a span's record names the list that it is in"), "{said}");
}

#[test]
fn a_span_without_an_owner_whose_entries_name_one_is_reported() {
    let said = report(|span| span.owner.store(core::ptr::null_mut(), Ordering::Relaxed));
    assert!(said.contains("owner and page map agree"), "{said}");
}

#[test]
fn a_page_map_that_names_another_owner_or_nothing_is_reported() {
    let of_another = report(|span| span.set_entries(Entry::small(Generation::NONE, span.class.get())));
    assert!(of_another.contains("the page map names the heap as the owner of its span"), "{of_another}");
    let nothing = report(|span| span.set_entries(Entry::NONE));
    assert!(nothing.contains("the page map names the heap as the owner of its span"), "{nothing}");
}

#[test]
fn a_block_that_is_in_a_bin_and_free_in_its_span_is_reported() {
    let world = World::new(4096);
    let (heap, _) = heap(&world);
    // The block at the front of the bin: its bit is set, and the counts still add up.
    let block = heap.bins().first(class_of(1000));
    let span = span_of(&world, block.cast());
    let (index, _) = block_at(class_of(1000), block.addr() - span.start().addr());
    let word = &span.bitmap()[index / 64];
    word.set(word.get() | 1 << (index % 64));
    span.n_free.set(span.n_free.get() + 1);
    span.n_out.set(span.n_out.get() - 1);
    let said = world.check().expect_err("the block is in two places");
    assert!(said.contains("blocks in bins are out of their spans"), "{said}");
}
