//! Structures of older and newer programs.

use super::*;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Now {
    size: usize,
    first: u64,
    added: u64,
}

// SAFETY: it is `repr(C)`, starts with a `usize`, and consists of integers.
unsafe impl SizedStruct for Now {
    const LEAST: usize = size_of::<usize>() + size_of::<u64>();
}

/// The structure of a newer program.
#[repr(C)]
#[derive(Clone, Copy)]
struct Newer {
    now: Now,
    more: u64,
}

fn filled(size: usize) -> Now {
    Now { size, first: 1, added: 2 }
}

#[test]
fn an_older_programs_structure_is_filled_as_far_as_it_goes() {
    let mut place = Now { size: Now::LEAST, first: 9, added: 9 };
    // SAFETY: the structure has more bytes than it says.
    assert_eq!(unsafe { fill(&raw mut place, filled) }, OK);
    assert_eq!(place, Now { size: Now::LEAST, first: 1, added: 9 });
}

#[test]
fn a_newer_programs_structure_says_how_much_was_filled() {
    let mut place = Newer { now: Now { size: size_of::<Newer>(), first: 9, added: 9 }, more: 9 };
    // SAFETY: the structure has as many bytes as it says.
    assert_eq!(unsafe { fill((&raw mut place).cast::<Now>(), filled) }, OK);
    assert_eq!((place.now, place.more), (filled(size_of::<Now>()), 9));
}

#[test]
fn members_that_an_older_program_does_not_have_are_zero() {
    let place = Now { size: Now::LEAST, first: 7, added: 7 };
    // SAFETY: the structure has more bytes than it says.
    assert_eq!(unsafe { read(&raw const place) }, Ok(Now { size: Now::LEAST, first: 7, added: 0 }));
}

#[test]
fn a_structure_that_is_too_small_or_missing_is_refused() {
    let mut place = Now { size: Now::LEAST - 1, first: 9, added: 9 };
    // SAFETY: the structure has more bytes than it says.
    assert_eq!(unsafe { fill(&raw mut place, filled) }, BAD_STRUCT);
    assert_eq!(place.first, 9);
    // SAFETY: as above.
    assert_eq!(unsafe { read(&raw const place) }, Err(FreestoneError::bad_struct(Now::LEAST - 1, Now::LEAST)));
    // SAFETY: null is refused.
    assert_eq!(unsafe { fill::<Now>(core::ptr::null_mut(), filled) }, BAD_STRUCT);
}
