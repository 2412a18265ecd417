use super::*;
use crate::size_class::{N_CLASSES, span_pages};
use crate::span::Kind;
use crate::testing::{World, span_at};
use freestone_base::units::Pages;

/// Adjacent runs of `n` and of two pages, for small spans.
fn neighbours(world: &World, n: u32) -> [OwnedSpan<'_>; 2] {
    let run = |pages| world.shared.pages.allocate(Pages(pages), Pages(1), Kind::Small).expect("memory");
    let spans = [run(n), run(2)].map(|run| span_at(world, run.page));
    assert_eq!(spans[1].page() - spans[0].page(), Pages(n), "the test needs them side by side");
    spans
}

#[test]
fn a_span_has_a_record_for_each_of_its_pages_and_the_first_describes_it() {
    let world = World::new(4096);
    let [span, next] = neighbours(&world, 3);
    assert_eq!((span.records().len(), next.records().len()), (3, 2));
    assert!(core::ptr::eq(&span.records()[0], span.record()));
    assert!(core::ptr::eq(span.records().as_ptr_range().end, next.record()));
}

#[test]
fn entries_are_set_for_all_pages_of_a_span_and_no_other() {
    let world = World::new(4096);
    let [span, next] = neighbours(&world, 3);
    let entry = Entry::small(crate::span::Generation::FIRST, 7);
    span.set_entries(entry);
    assert_eq!([0, 1, 2].map(|at| span.entry(at)), [entry; 3]);
    assert_eq!((span.entry(3), next.entry(0)), (Entry::NONE, Entry::NONE), "beyond the span");
}

#[test]
fn bitmaps_of_neighbours_do_not_overlap_and_have_a_bit_for_each_block() {
    let world = World::new(4096);
    let [span, next] = neighbours(&world, 3);
    assert!(core::ptr::eq(span.bitmap().as_ptr_range().end, next.bitmap().as_ptr()));
    for class in 0..N_CLASSES {
        let pages = span_pages(class).0 as usize;
        assert!(crate::size_class::span_blocks(class) <= pages * BITMAP_WORDS * 64, "class {class}");
    }
}
