//! What the host offers beside memory: WASI's functions where the target has them; elsewhere no clock, no text and no environment.
#![allow(unsafe_code)]
//!
//! # Safety
//! The functions of `wasi_snapshot_preview1` are declared as its documentation has them, with sizes and pointers of 32 bits.

pub(crate) use declared::write_error;
use declared::{clock_ns, environment, host_random};

/// A random number; without a host that has any, one made from the clock and a count.
pub(crate) fn random() -> u64 {
    use freestone_base::sync::{AtomicU64, Ordering};
    static N_ASKED: AtomicU64 = AtomicU64::new(1);
    host_random().unwrap_or_else(|| {
        let n = N_ASKED.fetch_add(1, Ordering::Relaxed);
        (n ^ clock_ns(false)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    })
}

/// Clocks.
pub mod clock {
    /// Microseconds since a fixed moment: monotonic. Always 0 without a clock: memory never expires then.
    #[must_use]
    pub fn monotonic_us() -> u64 {
        super::clock_ns(false) / 1000
    }

    /// Microseconds for which a processor has run the calling thread, and waits between: hosts have no clock of one thread.
    #[must_use]
    pub fn thread_cpu_us() -> u64 {
        monotonic_us()
    }

    /// Nanoseconds since 1970; 0 without a clock.
    #[must_use]
    pub fn since_1970_ns() -> u64 {
        super::clock_ns(true)
    }
}

/// Facts about the instance, and its end.
pub mod process {
    use crate::Errno;
    use core::ffi::c_int;

    /// Whether the environment must not be trusted: the host made it for the program.
    #[must_use]
    pub fn is_secure() -> bool {
        false
    }

    /// Bytes that memory grows by.
    #[must_use]
    pub fn os_page_bytes() -> usize {
        freestone_base::units::PAGE_BYTES
    }

    /// Calls `visit` with each `KEY=VALUE` of the environment, as bytes. An environment of more than some kilobytes is not read.
    pub fn for_each_environment(visit: impl FnMut(&[u8])) {
        super::environment(visit);
    }

    /// Ends the instance at once.
    pub fn abort() -> ! {
        core::arch::wasm32::unreachable()
    }

    /// Nothing: there is no `errno`.
    pub fn set_errno(_errno: Errno) {}

    /// No error.
    #[must_use]
    pub fn errno() -> Errno {
        Errno(0)
    }

    /// A number: there are no others.
    #[must_use]
    pub fn id() -> i32 {
        1
    }

    /// Whether it is this instance's number.
    #[must_use]
    pub fn is_running(id: i32) -> bool {
        id == self::id()
    }

    /// The bytes of the memory, which never shrinks.
    #[must_use]
    pub fn peak_resident_bytes() -> Option<u64> {
        Some((core::arch::wasm32::memory_size::<0>() * os_page_bytes()) as u64)
    }

    /// An unknown command line.
    pub fn command_line(_buffer: &mut [u8]) -> &[u8] {
        &[]
    }

    /// The number of the only thread.
    #[must_use]
    pub fn thread_id() -> i32 {
        1
    }

    /// The numbers of the two signals that are the program's to use, if there were any here.
    pub const USER_SIGNALS: [c_int; 2] = [1, 2];

    /// Has nothing called: no signal is served here.
    pub fn handle_signal(_number: i32, _handler: extern "C" fn(c_int)) -> bool {
        false
    }

    /// A function that is called around a fork.
    pub type ForkHandler = extern "C" fn();

    /// Nothing: nothing forks.
    pub fn at_fork(_before: ForkHandler, _in_parent: ForkHandler, _in_child: ForkHandler) -> bool {
        true
    }
}

/// WASI's functions.
#[cfg(target_os = "wasi")]
mod declared {
    use core::ptr;

    /// Bytes of an environment that is read.
    const ENVIRONMENT_BYTES: usize = 8192;
    /// Entries of an environment that is read.
    const ENTRIES: usize = 256;

    const STDERR: i32 = 2;
    const REALTIME: i32 = 0;
    const MONOTONIC: i32 = 1;

    /// A piece of text to write.
    #[repr(C)]
    struct Piece {
        start: *const u8,
        bytes: usize,
    }

    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    unsafe extern "C" {
        fn fd_write(descriptor: i32, pieces: *const Piece, n_pieces: usize, written: *mut usize) -> i32;
        fn clock_time_get(clock: i32, precision_ns: u64, time: *mut u64) -> i32;
        fn random_get(bytes: *mut u8, n: usize) -> i32;
        fn environ_sizes_get(n: *mut usize, bytes: *mut usize) -> i32;
        fn environ_get(entries: *mut *const u8, text: *mut u8) -> i32;
    }

    /// Writes text to standard error with one call. Errors are ignored.
    pub(crate) fn write_error(text: &[u8]) {
        let (piece, mut written) = (Piece { start: text.as_ptr(), bytes: text.len() }, 0);
        // SAFETY: one piece of text, and a place for a number.
        unsafe { fd_write(STDERR, &raw const piece, 1, &raw mut written) };
    }

    /// A clock in nanoseconds; 0 if the host has none.
    pub(super) fn clock_ns(real: bool) -> u64 {
        let mut time = 0;
        // SAFETY: there is a place for the number.
        unsafe { clock_time_get(if real { REALTIME } else { MONOTONIC }, 1_000_000, &raw mut time) };
        time
    }

    pub(super) fn host_random() -> Option<u64> {
        let mut bytes = [0; 8];
        // SAFETY: there is room for as many bytes.
        let is_given = unsafe { random_get(bytes.as_mut_ptr(), bytes.len()) } == 0;
        is_given.then(|| u64::from_ne_bytes(bytes))
    }

    pub(super) fn environment(mut visit: impl FnMut(&[u8])) {
        let (mut n, mut bytes) = (0, 0);
        // SAFETY: there are places for both numbers.
        let is_known = unsafe { environ_sizes_get(&raw mut n, &raw mut bytes) } == 0;
        if !is_known || n > ENTRIES || bytes > ENVIRONMENT_BYTES {
            return;
        }
        let (mut entries, mut text) = ([ptr::null(); ENTRIES], [0u8; ENVIRONMENT_BYTES]);
        // SAFETY: there is room for as many entries, and as much text, as the host has.
        if unsafe { environ_get(entries.as_mut_ptr(), text.as_mut_ptr()) } == 0 {
            let text = text.get(..bytes).unwrap_or_default();
            text.split(|&byte| byte == 0).filter(|entry| !entry.is_empty()).for_each(&mut visit);
        }
    }
}

/// No host is known.
#[cfg(not(target_os = "wasi"))]
mod declared {
    /// Writes nothing.
    pub(crate) fn write_error(_text: &[u8]) {}

    /// No time.
    pub(super) fn clock_ns(_real: bool) -> u64 {
        0
    }

    pub(super) fn host_random() -> Option<u64> {
        None
    }

    pub(super) fn environment(_visit: impl FnMut(&[u8])) {}
}
