extern crate std;
use super::*;
use crate::process;
use crate::readable::Reader;

#[test]
fn pages_are_closed_at_first_open_as_zero_and_lose_their_contents_when_closed() {
    let page = process::os_page_bytes();
    let at = map(4 * page).unwrap();
    let can_read = |offset: usize| Reader::new().word(at.addr() + offset);
    assert_eq!([0, page, 3 * page].map(can_read), [None; 3]);
    // SAFETY: both pages lie in the range.
    unsafe { open(at.wrapping_add(page), 2 * page) }.unwrap();
    assert_eq!([0, page, 2 * page, 3 * page].map(can_read), [None, Some(0), Some(0), None]);
    // SAFETY: the page is open, and this test's alone.
    unsafe { at.wrapping_add(page).cast::<usize>().write(7) };
    assert_eq!(can_read(page), Some(7));
    // SAFETY: the page lies in the range, and the number is not needed.
    unsafe { close(at.wrapping_add(page), page) }.unwrap();
    assert_eq!([page, 2 * page].map(can_read), [None, Some(0)]);
    // SAFETY: as above.
    unsafe { open(at.wrapping_add(page), page) }.unwrap();
    assert_eq!(can_read(page), Some(0), "the memory went back");
}

#[test]
fn more_than_there_is_is_refused() {
    assert_eq!(map(1 << 60), None);
}
