extern crate std;

use super::*;
use core::ffi::CStr;
use std::ffi::CString;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::{env, format, fs};

/// A path of this test's own, where nothing is.
fn path(name: &str) -> (PathBuf, CString) {
    let path = env::temp_dir().join(format!("freestone-{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let text = CString::new(path.to_str().unwrap()).unwrap();
    (path, text)
}

fn try_create(path: &CStr) -> Result<(), Errno> {
    SharedWords::<600>::none().create(path).map(|_| ())
}

#[test]
fn the_file_is_its_users_alone_and_a_store_is_seen_by_who_has_opened_it() {
    let (file, text) = path("words");
    let words = SharedWords::<600>::none();
    assert!(words.get().is_none());
    words.create(&text).unwrap()[599].store(4711, Ordering::Relaxed);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(SharedWords::<600>::open(&text).unwrap()[599].load(Ordering::Relaxed), 4711);
    words.get().unwrap()[0].store(1, Ordering::Relaxed);
    assert_eq!(SharedWords::<600>::open(&text).unwrap()[0].load(Ordering::Relaxed), 1);
    words.forget();
    assert!(words.get().is_none());
    SharedWords::<600>::remove(&text).unwrap();
    assert!(!file.exists());
}

#[test]
fn what_is_there_already_is_neither_replaced_nor_followed() {
    let (file, text) = path("taken");
    fs::write(&file, "mine").unwrap();
    assert_eq!(try_create(&text), Err(Errno::EXIST));
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    let (link, link_text) = path("link");
    symlink(&file, &link).unwrap();
    assert_eq!(try_create(&link_text), Err(Errno::EXIST));
    assert!(SharedWords::<600>::open(&link_text).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    fs::remove_file(link).unwrap();
    fs::remove_file(file).unwrap();
}

#[test]
fn a_file_of_another_length_and_a_folder_are_refused() {
    let (file, text) = path("length");
    fs::write(&file, [0; 599 * 8]).unwrap();
    assert_eq!(SharedWords::<600>::open(&text).err(), Some(Errno::INVAL));
    assert!(SharedWords::<599>::open(&text).is_ok());
    fs::remove_file(file).unwrap();
    assert_eq!(SharedWords::<600>::open(c"/tmp").err(), Some(Errno::INVAL));
    assert!(try_create(c"/nowhere/at/all").is_err());
}

#[test]
fn the_file_of_another_user_is_not_taken_for_an_own_one() {
    let (file, text) = path("owner");
    fs::write(&file, [0; 600 * 8]).unwrap();
    assert!(SharedWords::<600>::open_own(&text).is_ok());
    // Only root can give a file away.
    if std::os::unix::fs::chown(&file, Some(65_534), None).is_ok() {
        assert_eq!(SharedWords::<600>::open_own(&text).err(), Some(Errno::INVAL));
        assert!(SharedWords::<600>::open(&text).is_ok());
    }
    fs::remove_file(file).unwrap();
}

#[test]
fn a_child_has_no_words_whatever_made_it() {
    let (_, text) = path("child");
    let words = SharedWords::<600>::none();
    words.create(&text).unwrap()[599].store(7, Ordering::Relaxed);
    SharedWords::<600>::remove(&text).unwrap();
    // SAFETY: without a new stack, the child goes on here with a copy of everything; it ends without running anything else.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32;
    if child == 0 {
        let code = i32::from(words.get().is_some());
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    let mut status = -1;
    // SAFETY: waits for this test's child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(words.get().unwrap()[599].load(Ordering::Relaxed), 7, "the parent keeps them");
}
