//! The program that the launcher starts: found as a shell finds it, and executed without handing broken programs to a shell.
//!
//! The standard library calls execvp, which hands every file that the kernel refuses to `/bin/sh`, and the shell then reads a damaged
//! program as a script. Here that happens only to files that may be scripts, as in a shell.
//!
//! # Safety
//! Between fork and exec only async-signal-safe calls are made: `ptrace`, `pthread_sigmask`, `execv`.
#![allow(unsafe_code)]

use crate::process::command_file::{self, Refusal};
use crate::process::interrupt::AwaitedSignals;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::{io, ptr};

/// A program and its arguments.
pub(super) struct Program {
    name: OsString,
    path: PathBuf,
    arguments: Vec<OsString>,
}

/// The arguments of `execv`, prepared before the fork, because nothing may be allocated after it.
struct Image {
    path: CString,
    /// The strings that the pointers point to.
    _arguments: Vec<CString>,
    /// Ends with a null pointer.
    pointers: Vec<*const libc::c_char>,
}

// SAFETY: the pointers point into the strings stored beside them, which are never changed and move with the value.
unsafe impl Send for Image {}
// SAFETY: nothing in it can be changed through a shared reference.
unsafe impl Sync for Image {}

impl Image {
    fn new(path: &OsStr, arguments: Vec<&OsString>) -> io::Result<Self> {
        let arguments: Vec<CString> =
            arguments.into_iter().map(|argument| CString::new(argument.as_bytes())).collect::<Result<_, _>>()?;
        let pointers = arguments.iter().map(|argument| argument.as_ptr()).chain([ptr::null()]).collect();
        Ok(Self { path: CString::new(path.as_bytes())?, _arguments: arguments, pointers })
    }

    /// Replaces this process by the program; returns only if the kernel refuses. Async-signal-safe.
    fn execute(&self) -> io::Error {
        // SAFETY: the path is a C string, and the pointers are C strings followed by a null pointer; `self` keeps all of them alive.
        unsafe { libc::execv(self.path.as_ptr(), self.pointers.as_ptr()) };
        io::Error::last_os_error()
    }
}

impl Program {
    /// The program called `name`, as a shell would find it.
    ///
    /// # Errors
    /// There is no such file, or it cannot be executed.
    pub(super) fn find(name: &OsStr, arguments: &[OsString]) -> Result<Self, Refusal> {
        Ok(Self { name: name.to_owned(), path: command_file::find(name)?, arguments: arguments.to_vec() })
    }

    /// Starts it with the awaited signals unblocked; if `traced`, this process traces it. Returns its process number.
    ///
    /// # Errors
    /// The kernel refuses to execute it.
    pub(super) fn start(&self, traced: bool, awaited: AwaitedSignals) -> Result<libc::pid_t, Refusal> {
        self.spawn(traced, awaited).map_err(|error| self.refusal(&error))
    }

    fn spawn(&self, traced: bool, awaited: AwaitedSignals) -> io::Result<libc::pid_t> {
        let arguments = std::iter::once(&self.name).chain(&self.arguments).collect();
        let image = Image::new(self.path.as_os_str(), arguments)?;
        let may_be_script = command_file::may_be_script(&self.path);
        let execute = move || {
            if traced {
                // SAFETY: asks the kernel to let the parent trace this process; it is a plain system call without addresses.
                unsafe {
                    libc::ptrace(
                        libc::PTRACE_TRACEME,
                        0,
                        ptr::null_mut::<libc::c_void>(),
                        ptr::null_mut::<libc::c_void>(),
                    )
                };
            }
            awaited.unblock();
            let error = image.execute();
            // On success the standard library calls execvp next, which starts a shell for a script without a `#!` line.
            if may_be_script && error.raw_os_error() == Some(libc::ENOEXEC) { Ok(()) } else { Err(error) }
        };
        let mut command = Command::new(&self.path);
        command.arg0(&self.name).args(&self.arguments);
        // SAFETY: between fork and exec the closure only calls ptrace, pthread_sigmask and execv, which are async-signal-safe.
        unsafe { command.pre_exec(execute) };
        Ok(command.spawn()?.id() as libc::pid_t)
    }

    fn refusal(&self, error: &io::Error) -> Refusal {
        let why = match error.raw_os_error() {
            // The file itself exists: `find` saw it.
            Some(libc::ENOENT) => "it is there, but the interpreter or the loader that it names is not".to_owned(),
            Some(libc::ENOEXEC) => "it is neither a program for this machine nor a script".to_owned(),
            _ => error.to_string(),
        };
        Refusal::new(Refusal::NOT_RUNNABLE, format!("command '{}': {why}", self.name.display()))
    }
}
