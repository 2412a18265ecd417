use super::*;
use crate::span::Kind;
use crate::testing::{World, span_at};
use freestone_base::units::Pages;
use std::vec::Vec;

/// The first pages of three spans of the test's.
fn three(world: &World) -> [PageIndex; 3] {
    [(); 3].map(|()| world.shared.pages.allocate(Pages(1), Pages(1), Kind::Small).expect("memory").page)
}

fn pages(world: &World, list: &SpanList) -> Vec<PageIndex> {
    list.iter(world.shared.pages.layout()).map(|(page, _)| page).collect()
}

/// A list of all of them, the last in front.
fn list_of(world: &World, all: [PageIndex; 3]) -> SpanList {
    let list = SpanList::new();
    all.iter().for_each(|&page| list.push(&span_at(world, page)));
    list
}

#[test]
fn spans_are_listed_from_the_last_pushed_to_the_first() {
    let world = World::new(4096);
    let all @ [a, b, c] = three(&world);
    let list = SpanList::new();
    assert_eq!((list.first(), list.is_empty(), pages(&world, &list)), (None, true, Vec::new()));
    let list = list_of(&world, all);
    assert_eq!((list.first(), list.is_empty(), pages(&world, &list)), (Some(c), false, std::vec![c, b, a]));
}

#[test]
fn a_span_is_removed_from_any_place_and_its_neighbours_are_linked() {
    for (gone, left) in [(0, [2, 1]), (1, [2, 0]), (2, [1, 0])] {
        let world = World::new(4096);
        let all = three(&world);
        let list = list_of(&world, all);
        list.remove(&span_at(&world, all[gone]));
        assert_eq!(pages(&world, &list), left.map(|at| all[at]));
        // The backward links, too: the last one can be removed.
        list.remove(&span_at(&world, all[left[1]]));
        assert_eq!(pages(&world, &list), [all[left[0]]]);
    }
}

#[test]
fn popping_takes_every_span_once_from_the_front() {
    let world = World::new(4096);
    let all @ [a, b, c] = three(&world);
    let list = list_of(&world, all);
    let layout = world.shared.pages.layout();
    let popped: Vec<_> = core::iter::from_fn(|| list.pop(layout)).map(|span| span.page()).collect();
    assert_eq!((popped, list.is_empty()), (std::vec![c, b, a], true));
}
