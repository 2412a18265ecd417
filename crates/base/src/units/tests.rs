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
