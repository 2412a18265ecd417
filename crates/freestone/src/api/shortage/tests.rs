use super::*;
use core::cell::Cell;

#[test]
fn what_was_got_is_returned_without_another_try() {
    let got = handle(Some(1), |got: &Option<u32>| got.is_none(), || panic!("there was no shortage"));
    assert_eq!(got, Some(1));
}

#[test]
#[cfg_attr(miri, ignore = "starts the process's allocator")]
fn what_was_not_got_is_tried_once_more() {
    for second in [Some(2), None] {
        let n_tries = Cell::new(0);
        let again = || {
            n_tries.set(n_tries.get() + 1);
            second
        };
        assert_eq!(handle(None, |got: &Option<u32>| got.is_none(), again), second);
        assert_eq!(n_tries.get(), 1);
    }
}

#[test]
fn null_sets_errno_and_a_block_leaves_it() {
    let before = Errno(77);
    process::set_errno(before);
    let mut byte = 0u8;
    assert_eq!(or_enomem(&raw mut byte), &raw mut byte);
    assert_eq!(process::errno(), before);
    assert!(or_enomem(core::ptr::null_mut()).is_null());
    assert_eq!(process::errno(), Errno::NOMEM);
}
