//! The memory limit of the process's control group, version 2 or 1.
//!
//! Reading it takes several system calls, so callers do it once. There is no limit where a file cannot be read, unless it can be later.

use crate::Errno;
use crate::file::{number, read};
use crate::scratch::with_rows;
use core::ffi::CStr;

/// Longest list of groups that is read, in bytes.
const GROUPS_BYTES: usize = 4096;

/// Longest name of a limit file, in bytes, with its final zero. The limits of groups whose files have longer names are not read; their parents'
/// are.
const NAME_BYTES: usize = 1024;

/// A limit at or above this means that there is none, in version 1.
const UNLIMITED_BYTES: u64 = 1 << 62;

/// The smallest memory limit in bytes of the process's control group and its ancestors, if there is one.
///
/// ```
/// if let Ok(Some(bytes)) = freestone_os::cgroup::memory_limit_bytes() {
///     println!("the control group allows {bytes} bytes");
/// }
/// ```
///
/// # Errors
/// An error that passes, such as that the process has no file descriptor left.
pub fn memory_limit_bytes() -> Result<Option<u64>, Errno> {
    let mut found = Found { smallest: UNLIMITED_BYTES, failed: None };
    // Any thread may be the one that reads it, on a stack as small as 16 KiB.
    let list_is_read = with_rows(GROUPS_BYTES, |own| {
        if let Some(groups) = found.read(c"/proc/self/cgroup", own) {
            groups.split(|&byte| byte == b'\n').for_each(|line| found.look_at_group(line));
        }
    });
    match found.failed {
        Some(errno) => Err(errno),
        None if list_is_read.is_none() => Err(Errno::NOMEM),
        None => Ok(found.limit()),
    }
}

/// What reading the files has found.
struct Found {
    /// The smallest limit in bytes, or [`UNLIMITED_BYTES`].
    smallest: u64,
    /// An error that passes.
    failed: Option<Errno>,
}

impl Found {
    fn limit(&self) -> Option<u64> {
        Some(self.smallest).filter(|&limit| limit < UNLIMITED_BYTES)
    }

    /// The contents of a file; `None` if it cannot be read.
    fn read<'b>(&mut self, name: &CStr, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let text = read(name, buffer);
        if let Err(errno) = text {
            self.failed = if errno.is_passing() { Some(errno) } else { self.failed };
        }
        text.ok()
    }

    /// Reads the limits of the group that a line of the list names.
    fn look_at_group(&mut self, line: &[u8]) {
        let mut fields = line.splitn(3, |&byte| byte == b':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { return };
        if controllers.is_empty() {
            self.look_on_path(b"/sys/fs/cgroup", path, b"/memory.max");
            self.look_on_path(b"/sys/fs/cgroup/unified", path, b"/memory.max");
        } else if controllers.split(|&byte| byte == b',').any(|name| name == b"memory") {
            self.look_on_path(b"/sys/fs/cgroup/memory", path, b"/memory.limit_in_bytes");
        }
    }

    /// Reads the limits in `file` of `path` under `root` and of each of its parents.
    #[inline(never)]
    fn look_on_path(&mut self, root: &[u8], path: &[u8], file: &[u8]) {
        let mut path = Some(path.strip_suffix(b"/").unwrap_or(path));
        while let Some(group) = path {
            let (mut name, mut contents) = ([0; NAME_BYTES], [0; 32]);
            let text = joined(&mut name, [root, group, file]).and_then(|name| self.read(name, &mut contents));
            self.smallest = text.and_then(parse_limit).unwrap_or(UNLIMITED_BYTES).min(self.smallest);
            path = group.iter().rposition(|&byte| byte == b'/').and_then(|slash| group.get(..slash));
        }
    }
}

/// The parts one behind the other, as a name; `None` if that is too long, or no name.
fn joined<'b>(name: &'b mut [u8], parts: [&[u8]; 3]) -> Option<&'b CStr> {
    let mut len = 0;
    for part in parts {
        name.get_mut(len..len + part.len())?.copy_from_slice(part);
        len += part.len();
    }
    CStr::from_bytes_with_nul(name.get(..=len)?).ok()
}

/// The number in a limit file; `None` for `max` and for the huge default of version 1.
fn parse_limit(text: &[u8]) -> Option<u64> {
    number(text).filter(|&limit| limit < UNLIMITED_BYTES)
}

#[cfg(test)]
mod tests;
