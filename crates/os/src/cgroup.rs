//! The memory limit of the process's control group, version 2 or 1.
//!
//! Reading it takes several system calls, so callers do it once. If anything fails, there is no limit.

use crate::file::{number, read};
use crate::scratch::with_rows;
use core::ffi::CStr;

/// Longest list of groups that is read, in bytes.
const GROUPS_BYTES: usize = 4096;

/// Longest name of a limit file, in bytes, with its final zero. The limits of groups whose files have longer names are not read; their parents'
/// are.
const NAME_BYTES: usize = 1024;

/// A limit at or above this means that there is none, in version 1.
const UNLIMITED_V1_BYTES: u64 = 1 << 62;

/// The smallest memory limit in bytes of the process's control group and its ancestors, if there is one.
///
/// ```
/// if let Some(bytes) = freestone_os::cgroup::memory_limit_bytes() {
///     println!("the control group allows {bytes} bytes");
/// }
/// ```
#[must_use]
pub fn memory_limit_bytes() -> Option<u64> {
    // Any thread may be the one that reads it, on a stack as small as 16 KiB.
    with_rows(GROUPS_BYTES, |own| smallest_of(read(c"/proc/self/cgroup", own).ok()?))?
}

/// The smallest limit of the groups in a list.
fn smallest_of(groups: &[u8]) -> Option<u64> {
    groups
        .split(|&byte| byte == b'\n')
        .filter_map(|line| {
            let mut fields = line.splitn(3, |&byte| byte == b':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            if controllers.is_empty() {
                [&b"/sys/fs/cgroup"[..], b"/sys/fs/cgroup/unified"]
                    .iter()
                    .filter_map(|root| smallest_on_path(root, path, b"/memory.max"))
                    .min()
            } else if controllers.split(|&byte| byte == b',').any(|name| name == b"memory") {
                smallest_on_path(b"/sys/fs/cgroup/memory", path, b"/memory.limit_in_bytes")
            } else {
                None
            }
        })
        .min()
}

/// The smallest limit found in `file` of `path` under `root` and each of its parents.
fn smallest_on_path(root: &[u8], path: &[u8], file: &[u8]) -> Option<u64> {
    let mut path = path.strip_suffix(b"/").unwrap_or(path);
    let mut smallest = None;
    loop {
        if let Some(limit) = read_limit(root, path, file) {
            smallest = Some(smallest.map_or(limit, |other: u64| other.min(limit)));
        }
        let Some(slash) = path.iter().rposition(|&byte| byte == b'/') else { return smallest };
        path = path.get(..slash)?;
    }
}

fn read_limit(root: &[u8], path: &[u8], file: &[u8]) -> Option<u64> {
    let mut name = [0; NAME_BYTES];
    let mut len = 0;
    for part in [root, path, file] {
        name.get_mut(len..len + part.len())?.copy_from_slice(part);
        len += part.len();
    }
    let name = CStr::from_bytes_with_nul(name.get(..=len)?).ok()?;
    let mut contents = [0; 32];
    parse_limit(read(name, &mut contents).ok()?)
}

/// The number in a limit file; `None` for `max` and for the huge default of version 1.
fn parse_limit(text: &[u8]) -> Option<u64> {
    number(text).filter(|&limit| limit < UNLIMITED_V1_BYTES)
}

#[cfg(test)]
mod tests;
