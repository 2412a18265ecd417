use super::shape::{FIELDS_MOST, FUNCTION_LINES_MOST, PARAMETERS_MOST};
use super::*;
use crate::samples::Sample;

/// The complaints about a file of this text.
fn complaints_about(text: &str) -> Vec<String> {
    let sample = Sample::new(&[("lib.rs", text)]);
    let krate = Crate::read(sample.folder()).expect("the sample parses");
    shape::complaints(&krate.files[0])
}

#[test]
fn a_long_file_needs_a_reason_in_its_head() {
    let long = "\n".repeat(FILE_LINES_MOST + 1);
    assert!(long_file("x.rs", &long).is_some());
    assert!(long_file("x.rs", &long[1..]).is_none());
    assert!(long_file("x.rs", &format!("//! Long because: it is a table.\n{long}")).is_none());
    assert!(long_file("x.rs", &format!("{long}//! Long because: it is a table.\n")).is_some(), "at its end");
}

#[test]
fn a_long_function_needs_a_reason_and_a_test_does_not() {
    let function = format!("fn f() {{{}}}", "\n".repeat(FUNCTION_LINES_MOST));
    assert_eq!(complaints_about(&function).len(), 1);
    assert!(complaints_about(&function.replacen('\n', "", 1)).is_empty());
    assert!(
        complaints_about(&format!("/// Does it.\n// Long because: it is one list.\n#[inline]\n{function}")).is_empty()
    );
    assert!(complaints_about(&format!("#[cfg(test)]\nmod tests {{ {function} }}")).is_empty());
    assert_eq!(complaints_about(&format!("struct T; impl T {{ pub {function} }}")).len(), 1);
}

#[test]
fn wide_types_and_functions_need_a_reason() {
    let fields: String = (0..=FIELDS_MOST).map(|n| format!("f{n}: u8,")).collect();
    assert_eq!(complaints_about(&format!("struct T {{ {fields} }}")).len(), 1);
    assert!(complaints_about(&format!("/// Wide because: the kernel has it so.\nstruct T {{ {fields} }}")).is_empty());
    let few = fields.replacen("f0: u8,", "", 1);
    assert!(complaints_about(&format!("struct T {{ {few} }}")).is_empty());
    let parameters: String = (0..=PARAMETERS_MOST).map(|n| format!("p{n}: u8,")).collect();
    assert_eq!(complaints_about(&format!("fn f({parameters}) {{}}")).len(), 1);
}

#[test]
fn files_that_allow_unsafe_are_held_to_their_number() {
    let sample =
        Sample::new(&[("lib.rs", "mod a; mod b;"), ("a.rs", "#![allow(unsafe_code)]"), ("b.rs", "// unsafe_code")]);
    let krate = Crate::read(sample.folder()).expect("the sample parses");
    assert_eq!(unsafe_complaint("x", &krate, 1), None);
    assert!(unsafe_complaint("x", &krate, 0).is_some_and(|complaint| complaint.contains("0 may")));
    assert_eq!(unsafe_complaint("x", &krate, 2), None, "fewer are welcome");
}
