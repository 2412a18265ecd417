use super::*;
use std::format;
use std::string::{String, ToString};

fn path_with(settings: &Settings, number: i32) -> Option<String> {
    path_of(settings, number).map(|path| c_path(&path).unwrap().to_str().unwrap().to_string())
}

#[test]
fn the_path_has_the_processes_number_wherever_it_is_asked_for() {
    let settings = Settings::new();
    assert_eq!((path_with(&settings, 7), has_number(&settings)), (None, false));
    set_path(&settings, b"/run/%p/page-%p.%").unwrap();
    assert_eq!(path_with(&settings, 4711).as_deref(), Some("/run/4711/page-4711.%"));
    assert!(has_number(&settings));
    set_path(&settings, b"/run/page").unwrap();
    assert_eq!((path_with(&settings, 7).as_deref(), has_number(&settings)), (Some("/run/page"), false));
}

#[test]
fn on_means_a_name_by_number_and_off_none() {
    let settings = Settings::new();
    set_path(&settings, b"ON").unwrap();
    let folder = std::env::var("XDG_RUNTIME_DIR").unwrap_or("/tmp".into());
    assert_eq!(path_with(&settings, 12).unwrap(), format!("{folder}/freestone-12.live"));
    set_path(&settings, b"off").unwrap();
    assert_eq!(path_with(&settings, 12), None);
}

#[test]
fn a_path_that_the_number_makes_too_long_is_none() {
    let settings = Settings::new();
    let mut long = [b'x'; PATH_BYTES - 1];
    set_path(&settings, &long).unwrap();
    assert_eq!(path_with(&settings, 1).unwrap().len(), PATH_BYTES - 1);
    long[..2].copy_from_slice(PROCESS);
    set_path(&settings, &long).unwrap();
    assert!(path_with(&settings, 12).is_some());
    assert_eq!(path_with(&settings, 123), None);
    assert_eq!(set_path(&settings, &[b'x'; PATH_BYTES]), Err(Mistake::OutOfRange));
}
