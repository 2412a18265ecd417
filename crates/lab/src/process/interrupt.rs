//! Signals that ask the lab or its command to end.
//!
//! | what the lab does | what a signal does |
//! |---|---|
//! | it measures ([`listen`]) | the first one asks every loop to stop at a point where its results are complete; a second one of the same kind ends the lab |
//! | it runs a user's command ([`keep_for_the_command`]) | the handler records it, and the loop that waits for the command passes it on |
//!
//! A signal that the kernel sends (Ctrl-C, Ctrl-\, the terminal closing) is not passed on: the command is in the same process group and
//! receives it directly. A signal that was ignored when the lab started (`nohup`) stays ignored.
//!
//! # Safety
//! The handlers perform atomic operations only, which is allowed in a handler. Dispositions and masks are changed through locals that live
//! through the call.
#![allow(unsafe_code)]

use libc::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, c_int, c_void, siginfo_t, sigset_t};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Signals that ask a measurement to stop.
const STOPPING: [c_int; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Signals that are passed on to a running command.
const PASSED_ON: [c_int; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// The first signal that asked the lab to stop; 0 if none has. Written by the handler, read by the loops.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// The signals still to be passed on, one bit each. Set by the handler, cleared by the loop that passes them on.
static PENDING: AtomicU64 = AtomicU64::new(0);

type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

extern "C" fn ask(signal: c_int, _: *mut siginfo_t, _: *mut c_void) {
    // Only the first one is kept: it decides the exit status.
    let _ = ASKED.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
}

extern "C" fn keep(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a valid structure to a handler that was installed with SA_SIGINFO.
    if is_from_a_process(unsafe { &*info }) {
        PENDING.fetch_or(1 << signal, Ordering::Relaxed);
    }
}

/// Whether a process sent the signal, not the kernel.
fn is_from_a_process(info: &siginfo_t) -> bool {
    info.si_code <= 0
}

fn disposition(signal: c_int) -> libc::sigaction {
    let mut current = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with a null new action the call only writes the current one to the local.
    unsafe { libc::sigaction(signal, ptr::null(), current.as_mut_ptr()) };
    // SAFETY: the call filled it in; should it fail, all-zero is a valid `sigaction` too: the default disposition.
    unsafe { current.assume_init() }
}

/// Installs `handler` for `signal`, unless the signal is ignored.
fn handle(signal: c_int, handler: Handler, flags: c_int) {
    if disposition(signal).sa_sigaction == libc::SIG_IGN {
        return;
    }
    // SAFETY: all-zero is a valid `sigaction`: no flags, and no signal in its mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | flags;
    // SAFETY: `handler` has the signature that SA_SIGINFO requires, and both handlers perform atomic operations only.
    unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
}

/// From now on the signals ask the lab to stop.
pub(crate) fn listen() {
    STOPPING.iter().for_each(|&signal| handle(signal, ask, libc::SA_RESETHAND));
}

/// From now on the signals are recorded for the command that is about to run.
pub(crate) fn keep_for_the_command() {
    PASSED_ON.iter().for_each(|&signal| handle(signal, keep, 0));
}

/// Takes the signals that are to be passed on, each once.
pub(crate) fn pending_for_the_command() -> impl Iterator<Item = c_int> {
    let pending = PENDING.swap(0, Ordering::Relaxed);
    PASSED_ON.into_iter().filter(move |signal| pending & 1 << signal != 0)
}

/// The signal that asked the lab to stop, if one has.
pub(crate) fn asked_by() -> Option<c_int> {
    Some(ASKED.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
}

/// Whether the lab was asked to stop.
pub(crate) fn asked() -> bool {
    asked_by().is_some()
}

/// A closed pipe (`freestone bench --list | head`) ends the lab silently, as it ends other programs, and not with a panic.
pub(crate) fn end_when_the_reader_is_gone() {
    // SAFETY: the default disposition runs no code of this process.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Writing to a closed pipe returns an error instead of ending the lab: when the exit status is that of the command, a reader that has left
/// must not change it.
pub(crate) fn continue_when_the_reader_is_gone() {
    // SAFETY: an ignored signal runs no code of this process.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// The signals the launcher waits for: those to be passed on, and the end of its child.
#[derive(Clone, Copy)]
pub(crate) struct AwaitedSignals(sigset_t);

impl AwaitedSignals {
    fn new() -> Self {
        let mut set = MaybeUninit::<sigset_t>::zeroed();
        // SAFETY: the call writes an empty set to the local.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: sigemptyset initialised it.
        let mut set = unsafe { set.assume_init() };
        for &signal in PASSED_ON.iter().chain([&SIGCHLD]) {
            // SAFETY: the set is initialised, and the signal exists.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
        Self(set)
    }

    /// Blocks the signals: from now on they stay pending until [`AwaitedSignals::wait_for_one_from`] takes them.
    pub(crate) fn block() -> Self {
        let awaited = Self::new();
        // SAFETY: the set is initialised, and the old mask is not requested.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &awaited.0, ptr::null_mut()) };
        awaited
    }

    /// Unblocks the signals. Async-signal-safe.
    pub(crate) fn unblock(&self) {
        // SAFETY: the set is initialised, and the old mask is not requested.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &self.0, ptr::null_mut()) };
    }

    /// Waits for the next signal. Returns it if the process `sender` sent it, and `None` after anything else, including the end of a child.
    pub(crate) fn wait_for_one_from(&self, sender: u32) -> Option<c_int> {
        let mut info = MaybeUninit::<siginfo_t>::zeroed();
        // SAFETY: the set is initialised, and the local can be written.
        let signal = unsafe { libc::sigwaitinfo(&self.0, info.as_mut_ptr()) };
        // SAFETY: the call filled it in; should it be interrupted, all-zero is a valid `siginfo_t` too.
        let info = unsafe { info.assume_init() };
        if signal <= 0 || signal == SIGCHLD || !is_from_a_process(&info) {
            return None;
        }
        // SAFETY: a signal that a process sent carries the number of that process.
        let from = unsafe { info.si_pid() };
        (from == sender as libc::pid_t).then_some(signal)
    }
}

/// Calls `spawn` with the signals blocked. The child inherits the mask, so it loses no signal before it is ready to handle it.
pub(crate) fn while_blocked<T>(spawn: impl FnOnce() -> T) -> T {
    let awaited = AwaitedSignals::block();
    let spawned = spawn();
    awaited.unblock();
    spawned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_to_be_passed_on_are_taken_once_and_in_the_order_of_their_list() {
        PENDING.fetch_or(1 << SIGUSR1 | 1 << SIGINT, Ordering::Relaxed);
        assert_eq!(pending_for_the_command().collect::<Vec<_>>(), [SIGINT, SIGUSR1]);
        assert_eq!(pending_for_the_command().count(), 0);
    }

    #[test]
    fn a_signal_from_a_process_is_distinguished_from_one_from_the_kernel() {
        // SAFETY: all-zero is a valid `siginfo_t`.
        let mut info: siginfo_t = unsafe { MaybeUninit::zeroed().assume_init() };
        info.si_code = libc::SI_USER;
        assert!(is_from_a_process(&info));
        info.si_code = libc::SI_KERNEL;
        assert!(!is_from_a_process(&info));
    }
}
