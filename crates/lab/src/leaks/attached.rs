//! A living process that is held while its memory is read, and then goes on.
//!
//! # Safety
//! Requests to the kernel about the threads of another process; they carry numbers, or the place of a local that lives through the call. The kernel
//! refuses them for threads that this process may not trace.
#![allow(unsafe_code)]

use crate::leaks::stopped::{self, StoppedProcess, StoppedThread};
use crate::process::threads;
use anyhow::{Result, bail};
use libc::{c_int, c_long};
use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

/// The threads of a process, all stopped; they go on when the value is dropped.
pub(crate) struct Attached {
    stopped: StoppedProcess,
    /// The signals that threads were about to get when they stopped: they get them when they go on.
    signals: BTreeMap<i32, c_int>,
}

impl Attached {
    /// Stops a process.
    ///
    /// # Errors
    /// There is no such process, or this one may not trace it.
    pub(crate) fn stop(pid: i32) -> Result<Self> {
        let stopped = StoppedProcess { pid, threads: Vec::new(), former_stacks: Vec::new() };
        let mut attached = Self { stopped, signals: BTreeMap::new() };
        let mut seen = BTreeSet::new();
        // A thread that is not stopped yet may start another meanwhile: the list is read until it has no new one.
        loop {
            let new: Vec<i32> = threads::of(pid).into_iter().filter(|thread| seen.insert(*thread)).collect();
            if new.is_empty() {
                break;
            }
            for thread in new {
                attached.stop_one(thread)?;
            }
        }
        if attached.stopped.threads.is_empty() {
            bail!("there is no process {pid}");
        }
        Ok(attached)
    }

    fn stop_one(&mut self, thread: i32) -> Result<()> {
        if let Err(error) = stopped::seize(thread, 0) {
            return match error.raw_os_error() {
                // It has ended: meanwhile, or before the others, and then it is in the list until the last one has.
                Some(libc::ESRCH) => Ok(()),
                Some(libc::EPERM) if !threads::is_alive(self.stopped.pid, thread) => Ok(()),
                Some(libc::EPERM) => bail!(
                    "process {} cannot be traced: it is another user's, is traced already, or the kernel refuses \
                     (/proc/sys/kernel/yama/ptrace_scope)",
                    self.stopped.pid
                ),
                _ => bail!("process {} cannot be traced: {error}", self.stopped.pid),
            };
        }
        let nothing = ptr::null_mut::<libc::c_void>();
        // SAFETY: the request carries numbers only, and the thread is traced by this process now.
        unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, thread, nothing, nothing) };
        let mut status = 0;
        // SAFETY: the local can be written, and the thread is traced by this process.
        let waited = unsafe { libc::waitpid(thread, &mut status, libc::__WALL) };
        if waited == thread && libc::WIFSTOPPED(status) {
            // A stop without an event is not the one that was asked for: a signal came first.
            if status >> 16 == 0 {
                self.signals.insert(thread, libc::WSTOPSIG(status));
            }
            self.stopped.threads.extend(StoppedThread::read(thread));
        }
        Ok(())
    }

    /// The process.
    pub(crate) fn process(&self) -> &StoppedProcess {
        &self.stopped
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let nothing = ptr::null_mut::<libc::c_void>();
        for thread in &self.stopped.threads {
            let signal = self.signals.get(&thread.number).copied().unwrap_or(0);
            // SAFETY: the thread is stopped for this process; the request carries numbers only.
            unsafe { libc::ptrace(libc::PTRACE_DETACH, thread.number, nothing, c_long::from(signal)) };
        }
    }
}
