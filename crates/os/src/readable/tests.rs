extern crate std;
use super::*;
use crate::refused::with_refused;

#[test]
fn what_is_mapped_is_read_and_what_is_not_is_refused_without_a_fault() {
    let (number, mut reader) = (0x1234_5678_9abc_def0_usize, Reader::new());
    assert_eq!(reader.word(address::expose((&raw const number).cast_mut())), Some(number));
    for nowhere in [0, 8, 1 << 62, usize::MAX - 15] {
        assert_eq!(reader.word(nowhere & !7), None, "{nowhere:#x}");
    }
}

#[test]
fn a_word_is_aligned() {
    let numbers = [1usize, 2];
    let at = address::expose((&raw const numbers).cast::<usize>().cast_mut());
    assert_eq!(Reader::new().word(at + 1), None);
    assert!(Reader::new().bytes::<4>(at + 1).is_some());
}

#[test]
fn errno_stays_as_it_is() {
    process::set_errno(Errno::EXIST);
    assert_eq!(Reader::new().word(1 << 62), None);
    assert_eq!(process::errno(), Errno::EXIST);
}

#[test]
fn nothing_is_read_when_a_filter_refuses_the_question() {
    let number = 0x1234_usize;
    let at = address::expose((&raw const number).cast_mut());
    for errno in [libc::EPERM, libc::ENOSYS] {
        with_refused(libc::SYS_rt_sigprocmask, errno, || {
            assert_eq!(Reader::new().word(1 << 62), None, "it is not mapped");
            assert_eq!(Reader::new().word(at), None, "the kernel does not say that it is");
        });
    }
}
