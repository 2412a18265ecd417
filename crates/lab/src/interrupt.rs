//! The signals by which people and programs ask for an end, and who they are for.
//!
//! | what the lab does | what a signal does |
//! |---|---|
//! | it measures ([`listen`]) | the first asks every loop to stop where its results are whole; a second one of its kind ends the lab |
//! | it runs somebody's command ([`keep_for_the_command`]) | it is the command's: the loop that waits for the command passes it on |
//!
//! A signal that the kernel sends (Ctrl-C, Ctrl-\, the end of the terminal) is not passed on, because the command, in the same process group, has it
//! already. A signal that was ignored when the lab started (`nohup`) stays ignored. And a reader that has seen enough ends the lab quietly.
//!
//! # Safety
//! The handlers do nothing but atomic operations, which is allowed in a handler. Dispositions and masks are changed through structures that live
//! for the length of the call.
#![allow(unsafe_code)]

use libc::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, c_int, c_void, siginfo_t, sigset_t};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// What asks a measurement to stop.
const STOPPING: [c_int; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// What a running command is to get.
const PASSED_ON: [c_int; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// The signal that asked first; 0: none has.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// The signals to pass on, a bit each.
static KEPT: AtomicU64 = AtomicU64::new(0);

type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

extern "C" fn ask(signal: c_int, _: *mut siginfo_t, _: *mut c_void) {
    // The first one stays: it decides the exit status.
    let _ = ASKED.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
}

extern "C" fn keep(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel fills in the structure for a handler installed with SA_SIGINFO.
    if is_from_a_process(unsafe { &*info }) {
        KEPT.fetch_or(1 << signal, Ordering::Relaxed);
    }
}

/// Whether a process sent the signal, and not the kernel.
fn is_from_a_process(info: &siginfo_t) -> bool {
    info.si_code <= 0
}

fn handle(signal: c_int, handler: Handler, flags: c_int) {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the present disposition only; all-zero is a valid one (the default) should the call fail.
    let before = unsafe {
        libc::sigaction(signal, ptr::null(), before.as_mut_ptr());
        before.assume_init()
    };
    if before.sa_sigaction == libc::SIG_IGN {
        return;
    }
    // SAFETY: all-zero is a valid sigaction: no flags, and no signal in its mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | flags;
    // SAFETY: the handler does atomic operations only and has the signature that SA_SIGINFO asks for.
    unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
}

/// From here on the signals ask the lab to stop.
pub(crate) fn listen() {
    STOPPING.iter().for_each(|&signal| handle(signal, ask, libc::SA_RESETHAND));
}

/// From here on the signals are for the command that is about to run.
pub(crate) fn keep_for_the_command() {
    PASSED_ON.iter().for_each(|&signal| handle(signal, keep, 0));
}

/// The signals to pass on, each once.
pub(crate) fn kept() -> impl Iterator<Item = c_int> {
    let kept = KEPT.swap(0, Ordering::Relaxed);
    PASSED_ON.into_iter().filter(move |signal| kept & 1 << signal != 0)
}

/// The signal that asked the lab to stop.
pub(crate) fn asked_by() -> Option<c_int> {
    Some(ASKED.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
}

/// Whether the lab was asked to stop.
pub(crate) fn asked() -> bool {
    asked_by().is_some()
}

/// Lets a closed pipe (`freestone bench --list | head`) end the lab as it ends other programs, not with a panic.
pub(crate) fn end_with_the_reader() {
    // SAFETY: the default disposition calls no code of this program.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Lets writing to a closed pipe fail instead: where the exit status is the command's, it is not the reader's.
pub(crate) fn outlive_the_reader() {
    // SAFETY: "ignore" calls no code of this program.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// The signals a launcher waits for: those for its command, and its command's end.
#[derive(Clone, Copy)]
pub(crate) struct Awaited(sigset_t);

impl Awaited {
    /// The set.
    fn new() -> Self {
        let mut set = MaybeUninit::<sigset_t>::zeroed();
        // SAFETY: the set can be written and is initialised by the first call.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            PASSED_ON.iter().chain([&SIGCHLD]).for_each(|&signal| {
                libc::sigaddset(set.as_mut_ptr(), signal);
            });
            Self(set.assume_init())
        }
    }

    /// From here on they wait until they are asked for.
    pub(crate) fn block() -> Self {
        let awaited = Self::new();
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &awaited.0, ptr::null_mut()) };
        awaited
    }

    /// From here on they are delivered as they come. Async-signal-safe.
    pub(crate) fn unblock(&self) {
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &self.0, ptr::null_mut()) };
    }

    /// Waits for the next; returns the signal if the process `sender` sent it, and `None` after anything else, the end of a child included.
    pub(crate) fn wait_for_one_from(&self, sender: u32) -> Option<c_int> {
        let mut info = MaybeUninit::<siginfo_t>::zeroed();
        // SAFETY: the set is initialised, the structure can be written, and all-zero is valid for it should the call be interrupted.
        let (signal, info) = unsafe {
            let signal = libc::sigwaitinfo(&self.0, info.as_mut_ptr());
            (signal, info.assume_init())
        };
        // SAFETY: a signal that a process sent carries its number.
        let is_for_the_command = signal > 0
            && signal != SIGCHLD
            && is_from_a_process(&info)
            && unsafe { info.si_pid() } == sender as libc::pid_t;
        is_for_the_command.then_some(signal)
    }
}

/// Calls `spawn` with the signals blocked, so that the child, which inherits this, loses none before it is ready for them.
pub(crate) fn while_blocked<T>(spawn: impl FnOnce() -> T) -> T {
    let awaited = Awaited::block();
    let spawned = spawn();
    awaited.unblock();
    spawned
}
