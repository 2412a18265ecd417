//! The program a launcher starts: found as a shell finds it, and started without a shell's guesses about files that are no programs.
//!
//! The standard library's way to start a program hands whatever the kernel refuses to `/bin/sh`, which then reads a damaged program as if it were a
//! script. Here only a file that may be a script takes that way, as in a shell.
//!
//! # Safety
//! Between fork and exec only async-signal-safe calls are made: `ptrace`, `pthread_sigmask`, `execv`.
#![allow(unsafe_code)]

use crate::executable::{self, CannotRun};
use crate::interrupt::Awaited;
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

/// What `execv` is called with.
struct Image {
    path: CString,
    /// Own the text the pointers point to.
    _arguments: Vec<CString>,
    /// Ends with a null pointer.
    pointers: Vec<*const libc::c_char>,
}

// SAFETY: the pointers point into the strings beside them, which nobody changes.
unsafe impl Send for Image {}
// SAFETY: as above; nothing in it can be changed through a shared reference.
unsafe impl Sync for Image {}

impl Image {
    fn new(path: &OsStr, arguments: Vec<&OsString>) -> io::Result<Self> {
        let arguments: Vec<CString> =
            arguments.into_iter().map(|argument| CString::new(argument.as_bytes())).collect::<Result<_, _>>()?;
        let pointers = arguments.iter().map(|argument| argument.as_ptr()).chain([ptr::null()]).collect();
        Ok(Self { path: CString::new(path.as_bytes())?, _arguments: arguments, pointers })
    }

    /// Turns this process into the program; returns only if that fails.
    fn execute(&self) -> io::Error {
        // SAFETY: the path is a C string, and the pointers are C strings with a null pointer behind them; all outlive the call.
        unsafe { libc::execv(self.path.as_ptr(), self.pointers.as_ptr()) };
        io::Error::last_os_error()
    }
}

impl Program {
    /// Looks for it.
    ///
    /// # Errors
    /// There is none, or it cannot be executed.
    pub(super) fn find(name: &OsStr, arguments: &[OsString]) -> Result<Self, CannotRun> {
        Ok(Self { name: name.to_owned(), path: executable::find_command(name)?, arguments: arguments.to_vec() })
    }

    /// Starts it, traced if asked for, with the awaited signals unblocked; returns its number.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(super) fn start(&self, traced: bool, awaited: Awaited) -> Result<libc::pid_t, CannotRun> {
        self.spawn(traced, awaited).map_err(|error| self.refusal(&error))
    }

    fn spawn(&self, traced: bool, awaited: Awaited) -> io::Result<libc::pid_t> {
        let arguments = std::iter::once(&self.name).chain(&self.arguments).collect();
        let image = Image::new(self.path.as_os_str(), arguments)?;
        let may_be_script = executable::may_be_script(&self.path);
        let become_it = move || {
            if traced {
                // SAFETY: asks to be traced by the parent; async-signal-safe.
                unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
            }
            awaited.unblock();
            let error = image.execute();
            // The standard library tries next, and hands a script without a first line for the kernel to the shell.
            if may_be_script && error.raw_os_error() == Some(libc::ENOEXEC) { Ok(()) } else { Err(error) }
        };
        let mut command = Command::new(&self.path);
        command.arg0(&self.name).args(&self.arguments);
        // SAFETY: the closure calls ptrace, pthread_sigmask and execv, which are async-signal-safe, and allocates nothing.
        unsafe { command.pre_exec(become_it) };
        Ok(command.spawn()?.id() as libc::pid_t)
    }

    fn refusal(&self, error: &io::Error) -> CannotRun {
        let why = match error.raw_os_error() {
            // The file itself was found a moment ago.
            Some(libc::ENOENT) => "it is there, but the interpreter or the loader that it names is not".to_owned(),
            Some(libc::ENOEXEC) => "it is neither a program for this machine nor a script".to_owned(),
            _ => error.to_string(),
        };
        CannotRun::new(CannotRun::NOT_RUNNABLE, format!("command '{}': {why}", self.name.display()))
    }
}
