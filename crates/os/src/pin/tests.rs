#![allow(unsafe_code)]
extern crate std;
use super::*;

fn flags_of(section: &[(usize, usize)]) -> usize {
    let section: std::vec::Vec<_> = section.iter().map(|&(tag, value)| Dynamic { tag, value }).collect();
    // SAFETY: the tests' sections end with `DT_NULL`.
    unsafe { flags(section.as_ptr()) }
}

#[test]
fn flags_are_found_before_the_end_of_the_section_and_not_behind_it() {
    let (needed, end) = (1, (DT_NULL, 7));
    assert_eq!(flags_of(&[(needed, DF_1_PIE), (DT_FLAGS_1, DF_1_NODELETE), end]), DF_1_NODELETE);
    assert_eq!(flags_of(&[(needed, 5), end, (DT_FLAGS_1, DF_1_NODELETE)]), 0);
    assert_eq!(flags_of(&[end]), 0);
    // SAFETY: null is allowed.
    assert_eq!(unsafe { flags(ptr::null()) }, 0, "an object without a section");
}

#[test]
#[cfg_attr(miri, ignore = "asks the loader")]
fn a_test_program_is_no_plug_in() {
    // SAFETY: the assembler has stored the addresses, and nothing changes them.
    let dynamic = unsafe { OBJECT.dynamic };
    // SAFETY: the linker makes `_DYNAMIC` the object's dynamic section, or null.
    assert!(dynamic.is_null() || unsafe { flags(dynamic) } & DF_1_PIE != 0);
    pin();
}
