use super::*;
use crate::scratch_file::ScratchFile;
use std::fs;

#[test]
fn the_library_is_looked_for_in_lib_then_beside_the_command_then_where_the_variable_says() {
    let prefix = ScratchFile::new("prefix").unwrap();
    let path = |name: &str| prefix.path().join(name);
    fs::create_dir_all(path("bin")).unwrap();
    fs::create_dir_all(path("lib")).unwrap();
    let find = |named: Option<&str>| find_library(&path("bin/freestone"), named.map(path));
    let text = |named| find(named).unwrap_err().to_string();
    assert!(text(None).contains("FREESTONE_LIBRARY is not set"), "{}", text(None));
    assert!(text(None).contains(path("lib").to_str().unwrap()), "{}", text(None));
    assert!(text(Some("gone.so")).contains("gone.so, which is no file"), "{}", text(Some("gone.so")));
    for (better, expected) in
        [("named.so", Some("named.so")), ("bin/libfreestone.so", None), ("lib/libfreestone.so.0", None)]
    {
        fs::write(path(better), "").unwrap();
        assert_eq!(find(Some("named.so")).unwrap(), path(expected.unwrap_or(better)));
    }
    fs::write(path("lib/libfreestone.so"), "").unwrap();
    assert_eq!(find(None).unwrap(), path("lib/libfreestone.so"));
    fs::remove_dir_all(prefix.path()).unwrap();
}

#[test]
fn the_cache_is_that_of_xdg_or_in_the_home_and_never_a_relative_path() {
    let cache = |xdg: Option<&str>, home: Option<&str>| super::cache(xdg.map(PathBuf::from), home.map(PathBuf::from));
    assert_eq!(cache(Some("/x"), Some("/home/a")), Some("/x".into()));
    assert_eq!(cache(Some("x"), Some("/home/a")), Some("/home/a/.cache".into()));
    assert_eq!(cache(None, Some("/home/a")), Some("/home/a/.cache".into()));
    assert_eq!(cache(Some(""), None), None);
}
