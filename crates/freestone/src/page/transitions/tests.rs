use super::*;
use crate::config::key;
use crate::page::tests::MIB;
use crate::testing::World;
use freestone_base::units::PAGE_BYTES_LOG2;

#[test]
fn memory_is_prefaulted_and_gets_huge_pages_when_it_is_committed_if_the_options_say_so() {
    for (index, value, expected) in [
        (key::PREFAULT, "off", (0, 0)),
        (key::PREFAULT, "touch", (16, 0)),
        (key::PREFAULT, "willneed", (16, 0)),
        (key::PREFAULT, "populate", (16, 0)),
        (key::THP, "auto", (0, 0)),
        (key::THP, "on", (0, 16)),
        (key::THP, "off", (0, 0)),
    ] {
        let world = World::hardened(4096, "off");
        world.set(index, value);
        let pages = &world.shared.pages;
        assert!(pages.open().is_some());
        let before = world.os().prefaulted_bytes();
        assert!(pages.allocate(Pages(1), Pages(1), Kind::Small).is_some());
        let prefaulted = (world.os().prefaulted_bytes() - before) >> PAGE_BYTES_LOG2;
        assert_eq!((prefaulted, world.os().huge_bytes() >> PAGE_BYTES_LOG2), expected, "{index}={value}");
    }
}

#[test]
fn no_memory_is_prefaulted_as_a_span_is_carved() {
    for value in ["off", "touch"] {
        let world = World::new(4096);
        world.set(key::PREFAULT, value);
        let heap = world.heap();
        assert!(!heap.allocate(64, 1).start.is_null());
        let before = world.os().prefaulted_bytes();
        (0..2000).for_each(|_| assert!(!heap.allocate(64, 1).start.is_null()));
        assert_eq!(world.os().prefaulted_bytes(), before, "{value}");
    }
}

#[test]
fn memory_that_is_given_back_as_the_option_says_is_clean_only_if_it_reads_as_zero() {
    for (value, keeps_contents, expected) in
        [("dontneed", false, (16, 0)), ("dontneed", true, (0, 16)), ("free", false, (0, 16))]
    {
        let world = World::hardened(4096, "off");
        world.set(key::PURGE, value);
        if keeps_contents {
            world.os().keep_contents_on_purge();
        }
        let pages = &world.shared.pages;
        let run = pages.allocate(Pages(16), Pages(1), Kind::Large).unwrap();
        pages.free(OwnedRun::taken(Extent::new(run.page, run.pages)));
        let clean = pages.stats().clean_pages;
        assert_eq!(pages.purge(), MIB);
        let stats = pages.stats();
        assert_eq!((stats.clean_pages - clean, stats.stuck_pages), expected, "{value}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes 260,000 blocks")]
fn the_bitmaps_of_pages_go_back_with_them() {
    let world = World::hardened(4096, "off");
    let heap = world.heap();
    // 64 pages of spans.
    let fill = || -> std::vec::Vec<_> { (0..4 * MIB / 32).map(|_| heap.allocate(32, 1).start).collect() };
    fill().into_iter().for_each(|block| crate::testing::free(heap, block));
    crate::thread::upkeep::flush_all(heap);
    let of_bitmaps = || world.os().purged_bytes() - world.shared.pages.purged_bytes();
    let before = of_bitmaps();
    world.shared.pages.purge();
    let bytes = of_bitmaps() - before;
    assert!((48 * 512..=80 * 512).contains(&bytes), "{bytes}");
    world.check().unwrap();
    // They read as zero: spans can begin there.
    assert!(fill().iter().all(|block| !block.is_null()));
    world.check().unwrap();
}
