//! What the kernel says about this process: resident memory, page faults, processor time.
//!
//! Peak memory is `VmHWM`, not `ru_maxrss`, because the kernel starts `ru_maxrss` at the size of the process that spawned this one.
//!
//! # Safety
//! Calls of the C library with pointers to locals that live through the call.
#![allow(unsafe_code)]

use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

/// Processor time and page faults so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// Processor time in user mode, in nanoseconds.
    pub(crate) user_ns: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub(crate) system_ns: u64,
    /// Page faults that needed no reading from a disk.
    pub(crate) minor_faults: u64,
}

impl Usage {
    /// Usage of this process with all its threads.
    pub(crate) fn of_self() -> Self {
        Self::from(resource_usage(libc::RUSAGE_SELF))
    }

    /// Usage of the children this process has waited for.
    pub(crate) fn of_children() -> Self {
        Self::from(resource_usage(libc::RUSAGE_CHILDREN))
    }

    /// The usage between `earlier` and this.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns - earlier.user_ns,
            system_ns: self.system_ns - earlier.system_ns,
            minor_faults: self.minor_faults - earlier.minor_faults,
        }
    }

    /// The sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            minor_faults: self.minor_faults + other.minor_faults,
        }
    }
}

impl From<libc::rusage> for Usage {
    fn from(usage: libc::rusage) -> Self {
        Self {
            user_ns: nanoseconds(usage.ru_utime),
            system_ns: nanoseconds(usage.ru_stime),
            minor_faults: usage.ru_minflt as u64,
        }
    }
}

fn resource_usage(who: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a local that can be written.
    unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    // SAFETY: getrusage filled it in; should the call fail, all-zero is a valid `rusage` too.
    unsafe { usage.assume_init() }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// The largest resident size of any child this process has waited for, and of their waited-for descendants.
pub(crate) fn largest_child_bytes() -> u64 {
    resource_usage(libc::RUSAGE_CHILDREN).ru_maxrss as u64 * 1024
}

/// The largest resident size so far, in bytes; `None` without /proc.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    field_bytes(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// The value of a line such as `VmHWM:     2048 kB`, in bytes.
fn field_bytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with(key))?;
    let kibibytes: u64 = line[key.len()..].trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Sets the peak resident size to the current one. Where the kernel cannot, the peak stays that of the whole life of the process, which is
/// at most a few megabytes more.
pub(crate) fn reset_peak_rss() {
    // Not every kernel has the file.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Reads the resident size repeatedly without allocating.
pub(crate) struct RssReader {
    statm: fs::File,
    os_page_bytes: u64,
}

impl RssReader {
    /// Opens this process's memory statistics; `None` without /proc.
    pub(crate) fn open() -> Option<Self> {
        Some(Self { statm: fs::File::open("/proc/self/statm").ok()?, os_page_bytes: os_page_bytes() })
    }

    /// The resident size now, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.read(resident_os_pages) * self.os_page_bytes
    }

    /// The part of the resident size that is no file's, in bytes.
    pub(crate) fn anonymous_bytes(&self) -> u64 {
        self.read(|statm| resident_os_pages(statm).saturating_sub(statm_number(statm, 2))) * self.os_page_bytes
    }

    fn read(&self, figure: impl FnOnce(&[u8]) -> u64) -> u64 {
        let mut text = [0_u8; 128];
        let len = self.statm.read_at(&mut text, 0).unwrap_or(0);
        figure(&text[..len])
    }
}

fn resident_os_pages(statm: &[u8]) -> u64 {
    statm_number(statm, 1)
}

/// A number of `/proc/PID/statm`, counted from 0, without allocating.
fn statm_number(statm: &[u8], at: usize) -> u64 {
    let digits = statm.split(|&byte| byte == b' ').nth(at).unwrap_or(b"0");
    digits.iter().fold(0, |number, &digit| number * 10 + u64::from(digit.wrapping_sub(b'0')))
}

/// Size of an OS page in bytes.
pub(crate) fn os_page_bytes() -> u64 {
    // SAFETY: sysconf takes a plain number and touches no memory of this process.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Limits this process's address space to what it has mapped now and `more_bytes` on top.
pub(crate) fn limit_address_space(more_bytes: u64) {
    let mapped_bytes = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
        .map_or(0, |os_pages| os_pages * os_page_bytes());
    let limit = libc::rlimit { rlim_cur: mapped_bytes + more_bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: setrlimit only reads the local. If the kernel refuses, the run goes on without a limit and its record shows the peak.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
}

#[cfg(test)]
mod tests;
