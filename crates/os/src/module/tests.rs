extern crate std;
use super::*;
use std::string::ToString;

#[test]
fn code_of_the_program_is_in_the_programs_file() {
    let here = code_of_the_program_is_in_the_programs_file as fn() as usize;
    let text = CodeAddress(here).to_string();
    let exe = std::env::current_exe().unwrap();
    let (address, rest) = text.split_once(' ').unwrap();
    assert_eq!(address, std::format!("{here:#x}"));
    assert!(rest.starts_with(&std::format!("{}+0x", exe.display())), "{text}");
}

#[test]
fn an_address_outside_every_object_is_written_as_it_is() {
    let local = 0u64;
    let at = (&raw const local).addr();
    assert!(find(at).is_none());
    assert_eq!(CodeAddress(at).to_string(), std::format!("{at:#x}"));
}
