//! A process that is stopped by the tracer: its threads, and their registers.
//!
//! # Safety
//! The kernel writes at most as many bytes as the buffer has, and says how many. It refuses requests about threads that this process may not trace.
#![allow(unsafe_code)]

use crate::leaks::memory::words_in;
use std::{io, ptr};

/// Traces a thread of another process from now on, with `options` of ptrace.
///
/// # Errors
/// It has ended, or this process may not trace it.
pub(super) fn seize(thread: i32, options: libc::c_int) -> io::Result<()> {
    let nothing = ptr::null_mut::<libc::c_void>();
    // SAFETY: the request carries numbers only.
    let result = unsafe { libc::ptrace(libc::PTRACE_SEIZE, thread, nothing, libc::c_long::from(options)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Words that any processor's general registers fit into.
const MOST_WORDS: usize = 128;

/// Where things are among the words that the kernel writes.
#[cfg(target_arch = "x86_64")]
mod place {
    pub(super) const SYSTEM_CALL: usize = 15;
    pub(super) const STACK_POINTER: usize = 19;
    pub(super) const THREAD_POINTER: usize = 21;
}

/// As above; the thread pointer is in a set of its own.
#[cfg(target_arch = "aarch64")]
mod place {
    pub(super) const SYSTEM_CALL: usize = 8;
    pub(super) const STACK_POINTER: usize = 31;
}

/// As on x86-64.
#[cfg(target_arch = "riscv64")]
mod place {
    pub(super) const SYSTEM_CALL: usize = 17;
    pub(super) const STACK_POINTER: usize = 2;
    pub(super) const THREAD_POINTER: usize = 4;
}

/// The set of registers with AArch64's thread pointer.
#[cfg(target_arch = "aarch64")]
const NT_ARM_TLS: libc::c_int = 0x401;

/// A process of which every thread is stopped.
pub(crate) struct StoppedProcess {
    /// Its number.
    pub(crate) pid: i32,
    /// Its threads.
    pub(crate) threads: Vec<StoppedThread>,
    /// Stacks of threads that have ended, as they were mapped then: the C library keeps them for threads to come.
    pub(crate) former_stacks: Vec<FormerStack>,
}

/// The stack of a thread that has ended.
#[derive(Clone, Debug)]
pub(crate) struct FormerStack {
    /// Start and end of its mapping.
    pub(crate) range: (u64, u64),
    /// The thread's control block: what is above it belongs to the C library.
    pub(crate) thread_pointer: u64,
}

/// A stopped thread.
#[derive(Clone, Debug)]
pub(crate) struct StoppedThread {
    /// Its number.
    pub(crate) number: i32,
    /// All general registers.
    pub(crate) registers: Vec<u64>,
    /// Its stack pointer.
    pub(crate) stack_pointer: u64,
    /// The address of its control block, which thread-local storage is beside.
    pub(crate) thread_pointer: u64,
    /// The system call that it is in, or was in last.
    pub(crate) system_call: i64,
}

impl StoppedThread {
    /// Reads the registers.
    ///
    /// # Errors
    /// The thread is not stopped, or not traced by this process.
    pub(crate) fn read(number: i32) -> io::Result<Self> {
        let registers = register_set(number, libc::NT_PRSTATUS)?;
        let word = |at: usize| registers.get(at).copied().unwrap_or(0);
        #[cfg(not(target_arch = "aarch64"))]
        let thread_pointer = word(place::THREAD_POINTER);
        #[cfg(target_arch = "aarch64")]
        let thread_pointer = register_set(number, NT_ARM_TLS)?.first().copied().unwrap_or(0);
        Ok(Self {
            number,
            stack_pointer: word(place::STACK_POINTER),
            thread_pointer,
            system_call: word(place::SYSTEM_CALL) as i64,
            registers,
        })
    }
}

fn register_set(number: i32, set: libc::c_int) -> io::Result<Vec<u64>> {
    let mut bytes = [0u8; MOST_WORDS * 8];
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let place = ptr::without_provenance_mut::<libc::c_void>(set as usize);
    // SAFETY: the vector describes the whole of a buffer that lives through the call; the set's number is passed as an address by convention.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, number, place, &raw mut vector) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(words_in(&bytes[..vector.iov_len]).collect()) }
}
