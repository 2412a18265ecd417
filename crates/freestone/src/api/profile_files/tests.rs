extern crate std;
use super::*;
use std::format;

#[test]
fn a_name_gets_the_numbers_of_process_and_profile() {
    let name = |text: &str| std::string::String::from_utf8(expand(text, 7).as_bytes().to_vec()).expect("a text");
    let pid = std::process::id();
    assert_eq!(name("/tmp/a.heap"), "/tmp/a.heap\0");
    assert_eq!(name("%p-%n.%n"), format!("{pid}-7.7\0"));
    assert_eq!(name("50%%done%"), "50%%done%\0");
    assert_eq!(name(DEFAULT_FILE), format!("freestone.{pid}.7.heap\0"));
}
