use super::*;
use std::ffi::{CStr, CString};

fn path_of(file: &StoredPath) -> Option<CString> {
    file.get().map(|path| CStr::from_bytes_until_nul(&path).unwrap().to_owned())
}

#[test]
fn the_last_path_counts_and_an_empty_one_means_none() {
    let file = StoredPath::none();
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
    let (file, path) = (StoredPath::none(), [b'x'; PATH_BYTES - 1]);
    file.set(&path).unwrap();
    assert_eq!(path_of(&file), Some(CString::new(path).unwrap()));
}
