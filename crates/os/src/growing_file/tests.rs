extern crate std;

use super::*;
use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::{env, format, fs};

fn new_path(name: &str) -> (PathBuf, CString) {
    let path = env::temp_dir().join(format!("freestone-growing-{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let text = CString::new(path.to_str().unwrap()).unwrap();
    (path, text)
}

#[test]
fn what_is_written_to_a_part_is_in_the_file() {
    let (path, text) = new_path("part");
    let id = create(&text).unwrap();
    assert_eq!(create(&text), Err(Errno::EXIST));
    let at = map(&text, id, 8192, 4096).unwrap();
    // SAFETY: the part is mapped, and this test's alone.
    unsafe { at.wrapping_add(7).write(b'x') };
    // SAFETY: as above; it is not used again.
    unsafe { unmap(at, 4096) };
    let bytes = fs::read(&path).unwrap();
    assert_eq!((bytes.len(), bytes[8192 + 7]), (12288, b'x'));
    assert!(bytes.iter().filter(|&&byte| byte != 0).count() == 1);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    fs::remove_file(path).unwrap();
}

#[test]
fn another_file_of_the_same_name_is_left_alone() {
    let (path, text) = new_path("other");
    let id = create(&text).unwrap();
    fs::rename(&path, path.with_extension("kept")).unwrap();
    fs::write(&path, b"another").unwrap();
    assert_eq!(map(&text, id, 0, 4096), Err(Errno::INVAL));
    assert_eq!(fs::read(&path).unwrap(), b"another");
    fs::remove_file(path.with_extension("kept")).unwrap();
    fs::remove_file(path).unwrap();
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let id = FileId::of_numbers([0, 0]);
    assert!(map(c"/dev/full", id, 0, 4096).is_err());
    assert!(create(c"/nowhere/at/all").is_err());
}
