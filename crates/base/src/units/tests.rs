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
