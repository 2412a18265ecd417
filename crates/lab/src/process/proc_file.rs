//! Files of `/proc` that have names of files or processes in them, which are bytes and need not be UTF-8.

use std::path::Path;
use std::{fs, io};

/// The text of a file; what is not UTF-8 in it is replaced.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn read(path: impl AsRef<Path>) -> io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_file::ScratchFile;

    #[test]
    fn what_is_not_utf_8_leaves_the_rest_readable() {
        let file = ScratchFile::new("proc-file-test").unwrap();
        fs::write(file.path(), b"7 (\xff) S 1\n").unwrap();
        assert_eq!(read(file.path()).unwrap(), "7 (\u{fffd}) S 1\n");
    }
}
