//! The last refusal is read as it was stored, whatever other threads do.

extern crate std;

use super::*;

fn numbered(number: usize) -> FreestoneError {
    FreestoneError { code: number as c_int, address: number, block: number, value: number, limit: number }
}

#[test]
fn what_was_refused_last_is_read() {
    let last = LastError::new();
    assert_eq!(last.get(), FreestoneError::NONE);
    assert_eq!([last.refuse(numbered(4)), last.refuse(numbered(7))], [4, 7]);
    assert_eq!(last.get(), numbered(7));
}

#[test]
fn a_reader_never_sees_parts_of_two_refusals() {
    let last = LastError::new();
    std::thread::scope(|scope| {
        for thread in 1..=2 {
            let last = &last;
            scope.spawn(move || {
                (0..2000).for_each(|round| assert_ne!(last.refuse(numbered(thread * 10_000 + round)), 0))
            });
        }
        for _ in 0..2000 {
            let seen = last.get();
            assert_eq!(seen, numbered(seen.value));
        }
    });
}
