//! Values of the library's options that name a file for each process: `%` and a letter stand for a number or a word there, and `%%` for `%`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The value for files whose name is `start`, taken as it is, followed by `ending`, in which `%p` stands for the number of the process.
pub(crate) fn followed_by(start: &OsStr, ending: &str) -> OsString {
    let mut value = Vec::new();
    for &byte in start.as_bytes() {
        value.push(byte);
        value.extend((byte == b'%').then_some(b'%'));
    }
    value.extend_from_slice(ending.as_bytes());
    OsString::from_vec(value)
}

/// The value for files in a folder, with names as `name` says.
pub(crate) fn in_folder(folder: &Path, name: &str) -> OsString {
    followed_by(folder.as_os_str(), &format!("/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_folder_is_called_stands_for_nothing() {
        assert_eq!(in_folder(Path::new("/a"), "%p.live"), "/a/%p.live");
        assert_eq!(in_folder(Path::new("/50%/a%pb"), "%p.live"), "/50%%/a%%pb/%p.live");
        let odd = OsStr::from_bytes(b"/\xff%");
        assert_eq!(followed_by(odd, ".%p").as_bytes(), b"/\xff%%.%p");
    }
}
