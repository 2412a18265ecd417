//! What the kernel says about this process: resident memory, faults, time, and which library answers `malloc`.
//!
//! Peak memory is `VmHWM`, not `ru_maxrss`: the latter starts at the size of the process that spawned this one.
//!
//! # Safety
//! Plain C structures that the C library fills in.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Time and faults of a process so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Processor time in the program, in nanoseconds.
    pub(crate) user_ns: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub(crate) system_ns: u64,
    /// Page faults served without reading a file.
    pub(crate) minor_faults: u64,
}

impl Usage {
    /// Of this process, all its threads.
    pub(crate) fn of_self() -> Self {
        Self::read(libc::RUSAGE_SELF)
    }

    /// Of the children this process has waited for.
    pub(crate) fn of_children() -> Self {
        Self::read(libc::RUSAGE_CHILDREN)
    }

    fn raw(who: libc::c_int) -> libc::rusage {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the structure can be written; all-zero is valid for it should the call fail.
        unsafe {
            libc::getrusage(who, usage.as_mut_ptr());
            usage.assume_init()
        }
    }

    fn read(who: libc::c_int) -> Self {
        let usage = Self::raw(who);
        Self {
            user_ns: nanoseconds(usage.ru_utime),
            system_ns: nanoseconds(usage.ru_stime),
            minor_faults: usage.ru_minflt as u64,
        }
    }

    /// Largest resident size of a child this process has waited for, or of a descendant that was waited for.
    pub(crate) fn largest_child_bytes() -> u64 {
        Self::raw(libc::RUSAGE_CHILDREN).ru_maxrss as u64 * 1024
    }

    /// What was used between `earlier` and this.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns - earlier.user_ns,
            system_ns: self.system_ns - earlier.system_ns,
            minor_faults: self.minor_faults - earlier.minor_faults,
        }
    }

    /// The sum of two.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            minor_faults: self.minor_faults + other.minor_faults,
        }
    }
}

/// A kernel time in nanoseconds.
pub(crate) fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// Largest resident size so far, in bytes; `None` without /proc.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    status_bytes("VmHWM:")
}

/// Makes the present resident size the peak. Where the kernel refuses, the peak stays that of the whole life.
pub(crate) fn forget_peak_rss() {
    // The kernel may lack the file; the peak is then that of the process's whole life, which is at most a few megabytes more.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn status_bytes(key: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(key))?;
    let kibibytes: u64 = line[key.len()..].trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The resident size, read again and again without allocating.
pub(crate) struct RssReader {
    statm: fs::File,
    os_page_bytes: u64,
}

impl RssReader {
    /// Opens the kernel's view of this process; `None` without /proc.
    pub(crate) fn open() -> Option<Self> {
        Some(Self { statm: fs::File::open("/proc/self/statm").ok()?, os_page_bytes: os_page_bytes() })
    }

    /// Resident bytes now.
    pub(crate) fn bytes(&self) -> u64 {
        let mut text = [0_u8; 128];
        let len = self.statm.read_at(&mut text, 0).unwrap_or(0);
        let resident = text[..len].split(|&byte| byte == b' ').nth(1).unwrap_or(b"0");
        resident.iter().fold(0, |number, &digit| number * 10 + u64::from(digit.wrapping_sub(b'0'))) * self.os_page_bytes
    }
}

/// Milliseconds on the kernel's monotonic clock, which all processes share. The coarse one, a tick behind at most: the library reads it too.
pub(crate) fn monotonic_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure can be written; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// Size of an OS page.
pub(crate) fn os_page_bytes() -> u64 {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Allows this process `more` bytes of address space beyond what it has mapped.
pub(crate) fn limit_address_space(more: u64) {
    let mapped = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
        .map_or(0, |os_pages| os_pages * os_page_bytes());
    let limit = libc::rlimit { rlim_cur: mapped + more, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure is read only. Where the kernel refuses, the run goes on without a limit and its record shows the peak.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
}

/// Whether executing `path` raises rights by file capabilities.
pub(crate) fn has_file_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: both names are C strings; a null buffer of size 0 asks for the attribute's size only.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// The file that answers `malloc` in this process.
pub(crate) fn malloc_library() -> String {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the symbol exists in every dynamically linked program; the structure can be written and zero is valid for it.
    let info = unsafe {
        let symbol = libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr());
        libc::dladdr(symbol, info.as_mut_ptr());
        info.assume_init()
    };
    if info.dli_fname.is_null() {
        return String::from("unknown");
    }
    // SAFETY: the loader's file name is a C string that lives as long as the library.
    unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned()
}

/// The version the allocator in this process states through `freestone_peer_version` or `freestone_version`, or the C library's.
pub(crate) fn allocator_version() -> String {
    type Version = unsafe extern "C" fn() -> *const libc::c_char;
    for name in [c"freestone_peer_version", c"freestone_version"] {
        // SAFETY: symbols of these names have this signature, by agreement with the libraries that define them.
        let text = unsafe {
            let symbol = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            if symbol.is_null() {
                continue;
            }
            std::mem::transmute::<*mut libc::c_void, Version>(symbol)()
        };
        if !text.is_null() {
            // SAFETY: both functions return a C string constant.
            return unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        }
    }
    if malloc_library().contains("libc.so") {
        format!("glibc {}", glibc_version())
    } else {
        String::from(crate::allocator::UNSTATED)
    }
}

/// The version of the C library.
pub(crate) fn glibc_version() -> String {
    // SAFETY: returns a C string constant.
    unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy().into_owned()
}
