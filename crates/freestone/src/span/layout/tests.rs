#![allow(unsafe_code)]
use super::*;
use freestone_base::ptr::from_exposed;

/// Address ranges in which nothing is mapped: the layout is arithmetic.
fn layouts() -> impl Iterator<Item = (usize, Layout)> {
    let base = from_exposed(0x2800_0000_0000);
    let randoms = [0, 1, 12_345, u64::MAX, u64::MAX / 3];
    let ranges = [65 << 20, 80 << 20, 256 << 20, 1 << 36, 1 << 44];
    ranges
        .into_iter()
        .flat_map(move |bytes| randoms.map(|random| (bytes, random)))
        .filter_map(move |(bytes, random)| Some((bytes, Layout::new(base, bytes, 4096, random)?)))
}

#[test]
fn pages_metadata_and_storage_lie_in_the_range_one_behind_the_other_with_gaps() {
    for (bytes, layout) in layouts() {
        let end_of_pages = layout.page_start(PageIndex(0)).addr() + layout.n_pages * PAGE_BYTES;
        let starts =
            [layout.record(PageIndex(0)).addr(), layout.bitmap(PageIndex(0)).addr(), layout.map.start().addr()];
        assert!(starts[0] >= end_of_pages + PAGE_BYTES, "a gap");
        assert_eq!(starts[1], starts[0] + layout.n_pages * size_of::<Span>());
        assert_eq!(starts[2], starts[1] + layout.n_pages * BITMAP_BYTES);
        assert!(starts.iter().all(|start| start % 4096 == 0));
        let end_of_map = starts[2] + (layout.n_pages * size_of::<u32>()).next_multiple_of(PAGE_BYTES);
        let (storage, storage_bytes) = layout.storage();
        assert!(storage.addr() >= end_of_map + PAGE_BYTES, "a gap");
        assert!(storage.addr() + storage_bytes + PAGE_BYTES <= layout.base.addr() + bytes, "and a gap");
    }
}

#[test]
fn ranges_that_are_too_small_or_have_too_many_pages_are_refused() {
    let base = from_exposed(1 << 40);
    assert!(Layout::new(base, 64 << 20, 4096, 0).is_none());
    assert!(Layout::new(base, 1 << 50, 4096, 0).is_none());
    assert!(Layout::new(base, 0, 4096, 0).is_none());
}

/// In the range that is wanted of Linux, with its OS pages of 4 KiB.
#[test]
fn the_place_of_metadata_has_28_bits_that_the_place_of_pages_does_not_tell() {
    let (base, range) = (from_exposed(0x2800_0000_0000), 1 << 44);
    let place = |random| Layout::new(base, range, 4096, random).unwrap().record(PageIndex(0)).addr();
    let step = place(1) - place(0);
    assert_eq!(step, 4096);
    // Neighbouring numbers are neighbouring places: so many are different.
    assert_eq!(place((1 << 28) - 1) - place(0), ((1 << 28) - 1) * step);
}

#[test]
fn a_view_sees_as_far_as_its_reach_and_nothing_without_one() {
    let (_, layout) = layouts().next().unwrap();
    // SAFETY: no entry is read.
    let view = unsafe { View::new(&layout, 10) };
    let address = |page| layout.page_start(PageIndex(page)).addr();
    assert_eq!(view.page_of(address(9) + PAGE_BYTES - 1), Some(PageIndex(9)));
    assert_eq!((view.page_of(address(10)), view.entry(address(10))), (None, None));
    assert_eq!(view.page_of(address(0) - 1), None);
    assert_eq!((View::EMPTY.page_of(0), View::EMPTY.small_class(address(5))), (None, None));
}

#[test]
fn where_metadata_comes_first_the_pages_lie_behind_it_and_use_up_the_range() {
    let start: *mut u8 = from_exposed(0x1_0000);
    for range_bytes in [80 << 20, 1 << 30, 1 << 36] {
        let layout = Layout::metadata_first(start, range_bytes).unwrap();
        let n = layout.n_pages;
        assert_eq!(layout.record(PageIndex(0)).addr(), start.addr());
        assert_eq!(layout.map.start().addr(), start.addr() + n * (size_of::<Span>() + BITMAP_BYTES));
        let (storage, storage_bytes) = layout.storage();
        assert!(layout.base.addr() >= storage.addr() + storage_bytes && layout.base.addr() % PAGE_BYTES == 0);
        let end = layout.base.addr() + n * PAGE_BYTES;
        assert!(end <= start.addr() + range_bytes && n % PAGES_UNIT == 0);
        assert!(end + (PAGES_UNIT + 4) * RANGE_BYTES_PER_PAGE > start.addr() + range_bytes, "{range_bytes}: {n}");
    }
    let least = GAPS_BYTES + PAGES_UNIT * RANGE_BYTES_PER_PAGE;
    assert!(Layout::metadata_first(start, least).is_some() && Layout::metadata_first(start, least - 1).is_none());
    assert!(Layout::metadata_first(start, GAPS_BYTES - 1).is_none());
    assert!(Layout::metadata_first(start, usize::MAX).is_none(), "page numbers have 32 bits");
}
