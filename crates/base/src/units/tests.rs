use super::*;

#[test]
fn bytes_round_up_to_pages_and_never_wrap() {
    assert_eq!(Bytes(0).to_pages(), Some(Pages(0)));
    assert_eq!(Bytes(1).to_pages(), Some(Pages(1)));
    assert_eq!(Bytes(PAGE_BYTES).to_pages(), Some(Pages(1)));
    assert_eq!(Bytes(PAGE_BYTES + 1).to_pages(), Some(Pages(2)));
    #[cfg(target_pointer_width = "64")]
    assert_eq!(Bytes(usize::MAX).to_pages(), None);
}

#[test]
fn as_many_pages_as_a_number_counts_are_the_most() {
    #[cfg(target_pointer_width = "64")]
    {
        let most = u32::MAX as usize * PAGE_BYTES;
        assert_eq!(Bytes(most).to_pages(), Some(Pages(u32::MAX)));
        assert_eq!(Bytes(most + 1).to_pages(), None);
        assert_eq!(Pages(u32::MAX).to_bytes(), Bytes(most));
    }
    assert_eq!(Pages(3).to_bytes(), Bytes(3 * PAGE_BYTES));
}

#[test]
fn pages_saturate_where_they_say_so() {
    assert_eq!(Pages::in_bytes(2 * PAGE_BYTES as u64 + 1), Pages(2));
    assert_eq!(Pages::in_bytes(u64::MAX), Pages::MAX);
    assert_eq!(Pages::saturating_from(1 << 32), Pages::MAX);
    assert_eq!(Pages::MAX.saturating_add(Pages(1)), Pages::MAX);
    assert_eq!(Pages(2).saturating_sub(Pages(3)), Pages::ZERO);
    assert_eq!((Pages(2).checked_sub(Pages(3)), Pages(3).checked_sub(Pages(2))), (None, Some(Pages(1))));
}

#[test]
fn pages_are_added_and_subtracted_as_numbers_are() {
    assert_eq!((Pages(5) + Pages(3), Pages(5) - Pages(3)), (Pages(8), Pages(2)));
    let mut pages = Pages(5);
    pages += Pages(3);
    assert_eq!(pages, Pages(8));
    pages -= Pages(2);
    assert_eq!(pages, Pages(6));
}

#[test]
fn moments_compare_across_the_end_of_32_bits() {
    let (before, after) = (Moment(u32::MAX - 1), Moment(3));
    assert_eq!(after.since(before), Millis(5));
    assert_eq!(after.minus(Millis(5)), before);
    assert!(after.is_after(before) && !before.is_after(after) && !after.is_after(after));
    assert_eq!((after.age_of(before), after.age_of(after), before.age_of(after)), (Millis(5), Millis(0), Millis(0)));
    let (long, later) = (Millis(u32::MAX - 65_536), Millis(u32::MAX - 65_535));
    assert_eq!(
        [long, later].map(|age| after.age_of(after.minus(age))),
        [long, Millis(0)],
        "40 days, and a minute later"
    );
}
