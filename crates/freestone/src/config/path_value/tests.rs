use super::*;
use std::ffi::CString;

fn path_of(file: &PathValue) -> Option<CString> {
    file.load().map(|path| path.as_c().to_owned())
}

#[test]
fn the_last_path_counts_and_an_empty_one_is_none() {
    let file = PathValue::new();
    assert_eq!(path_of(&file), None);
    file.set(b"/tmp/a-longer-path").unwrap();
    file.set(b"/tmp/short").unwrap();
    assert_eq!(path_of(&file).as_deref(), Some(c"/tmp/short"));
    assert_eq!(file.set(&[b'x'; PATH_BYTES]), Err(Mistake::OutOfRange));
    assert_eq!(path_of(&file).as_deref(), Some(c"/tmp/short"));
    file.set(b"").unwrap();
    assert_eq!(path_of(&file), None);
}

#[test]
fn the_longest_path_is_kept_whole() {
    let (file, path) = (PathValue::new(), [b'x'; PATH_BYTES - 1]);
    file.set(&path).unwrap();
    assert_eq!(path_of(&file), Some(CString::new(path).unwrap()));
}
