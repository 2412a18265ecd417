extern crate std;
use super::*;
use std::format;

#[test]
fn a_name_gets_the_numbers_of_process_and_profile() {
    let named = |text: &str, of| {
        let mut name = FileName::new();
        expand(&mut name, text.as_bytes(), 7, of);
        std::string::String::from_utf8(name.as_bytes().to_vec()).expect("a text")
    };
    let name = |text: &str| named(text, Snapshot::Live);
    let pid = std::process::id();
    assert_eq!(name("/tmp/a.heap"), "/tmp/a.heap\0");
    assert_eq!(name("%p-%n.%n"), format!("{pid}-7.7\0"));
    assert_eq!((name("%w"), named("%n.%w", Snapshot::Peak)), ("live\0".into(), "7.peak\0".into()));
    assert_eq!(name("50%%done%"), "50%done%\0");
    let default = core::str::from_utf8(DEFAULT_FILE).expect("a text");
    assert_eq!(name(default), format!("freestone.{pid}.7.heap\0"));
}
