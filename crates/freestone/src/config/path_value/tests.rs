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

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the working directory is not known there")]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn a_relative_path_is_made_absolute_if_there_is_room_for_the_folder() {
    let (file, folder) = (PathValue::new(), std::env::current_dir().unwrap().into_os_string().into_encoded_bytes());
    let made = |path: &[u8]| {
        file.set(path).unwrap();
        file.make_absolute(false);
        path_of(&file).map(CString::into_bytes)
    };
    assert_eq!(made(b"r"), Some([&folder, &b"/r"[..]].concat()));
    assert_eq!([made(b"/a/r"), made(b"")], [Some(b"/a/r".to_vec()), None]);
    let longest = std::vec![b'x'; PATH_BYTES - 1 - folder.len() - 1];
    assert_eq!(made(&longest), Some([&folder, &b"/"[..], &longest].concat()));
    let longer = [&longest, &b"x"[..]].concat();
    assert_eq!(made(&longer), Some(longer));
}

#[test]
fn in_a_pattern_a_folder_keeps_its_percent_signs() {
    let file = PathValue::new();
    let joined = |folder: &[u8], is_pattern| {
        file.set_joined(folder, b"/%p.live", is_pattern).unwrap();
        path_of(&file).map(CString::into_bytes)
    };
    assert_eq!(joined(b"/a%pb/50%%", true), Some(b"/a%%pb/50%%%%/%p.live".to_vec()));
    assert_eq!(joined(b"/a%pb", false), Some(b"/a%pb/%p.live".to_vec()));
    for (n, is_long) in [(PATH_BYTES - 9, false), (PATH_BYTES - 8, true), (2 * PATH_BYTES, true)] {
        assert_eq!(file.set_joined(&std::vec![b'x'; n], b"/%p.live", true).is_err(), is_long);
    }
}
