//! Faults: a handler of SIGSEGV and SIGBUS that passes on what is not the allocator's.
#![allow(unsafe_code)]
//!
//! ```text
//!  fault ─▶ hook ─┬─ Outcome::Resume   the access is made again
//!                 ├─ Outcome::Fatal    the handler that was there before, if there is one, then abort
//!                 └─ Outcome::Foreign  the handler that was there before; without one, the signal's default
//! ```
//!
//! A program that installs a handler of its own later replaces this one, and may pass faults on to it. A runtime that looked for a handler before this one was
//! there, and installs its own right after, would do so without meaning to: Rust's does, with an allocation in between. So [`renew`] installs a second handler
//! above one that has taken the place of the first:
//!
//! ```text
//!  fault ─▶ second handler ─▶ hook ─▶ the one that replaced the first ─▶ maybe the first ─▶ the one that was there before that
//!                                                                        asks no more
//! ```
//!
//! # Safety
//! The kernel calls the handler with a signal's number, description and context. What was installed before is stored before this handler is
//! installed, and never changes after that; it is called as it was declared to the kernel.

pub use crate::access_fault::{Fault, Hook, Outcome};
use crate::process;
use crate::pthread::signal_mask::{self, change_blocked, set_of};
use crate::stack::Registers;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::{self, MaybeUninit};
use core::ptr;
use freestone_base::sync::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// The handlers that were there before one of ours, for each of the signals.
struct Previous([UnsafeCell<MaybeUninit<libc::sigaction>>; SIGNALS.len()]);

// SAFETY: written by the one thread that installs the handler, before the kernel knows it, and only read by the handler.
unsafe impl Sync for Previous {}

/// Of the first handler, and of the second.
static PREVIOUS: [Previous; 2] =
    [const { Previous([const { UnsafeCell::new(MaybeUninit::uninit()) }; SIGNALS.len()]) }; 2];
/// Which of them were called and asked to be called once (`SA_RESETHAND`).
static IS_USED: [[AtomicBool; SIGNALS.len()]; 2] = [const { [const { AtomicBool::new(false) }; SIGNALS.len()] }; 2];
static HOOK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
static IS_RENEWED: AtomicBool = AtomicBool::new(false);
/// The fault that the second handler asked about last.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Installs the handler, unless it was installed before: faults are passed to `hook` from now on. Returns whether it was not. Keeps `errno`.
pub fn install(hook: Hook) -> bool {
    if IS_INSTALLED.swap(true, Ordering::Relaxed) {
        return false;
    }
    HOOK.store(hook as *mut c_void, Ordering::Release);
    place::<0>();
    true
}

/// Installs a second handler if another one has taken the place of the first; once. Keeps `errno`.
pub fn renew() {
    let (first, second) = (handle::<0> as *const () as usize, handle::<1> as *const () as usize);
    let found = installed(SIGNALS[0]).sa_sigaction;
    let is_replaced = ![first, second, libc::SIG_DFL, libc::SIG_IGN].contains(&found);
    if is_replaced && IS_INSTALLED.load(Ordering::Relaxed) && !IS_RENEWED.swap(true, Ordering::Relaxed) {
        place::<1>();
    }
}

/// What is installed for a signal. Keeps `errno`: the call cannot fail.
fn installed(signal: c_int) -> libc::sigaction {
    // SAFETY: a `sigaction` is a structure of numbers and pointers; zeros are a valid one.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the call writes one structure, for which there is room.
    unsafe { libc::sigaction(signal, ptr::null(), &mut action) };
    action
}

/// Installs the first handler or the second. Keeps `errno`.
fn place<const WHICH: usize>() {
    let errno = process::errno();
    for (signal, previous) in SIGNALS.into_iter().zip(&PREVIOUS[WHICH].0) {
        let before = installed(signal);
        // SAFETY: only this thread installs this handler, and no other code accesses the structure before it is installed.
        unsafe { (*previous.get()).write(before) };
        // SAFETY: a `sigaction` is a structure of numbers and pointers; zeros are a valid one.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = handle::<WHICH> as *const () as usize;
        // While the handler runs, the signal is blocked: a fault of its own, of a stack that is too short for it, ends the process by the default.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | before.sa_flags & libc::SA_RESTART;
        // What the handler that was there wants blocked while it runs: from the start, for a signal that comes before that is called.
        action.sa_mask = before.sa_mask;
        // SAFETY: the structure names a handler of the type that its flags say, which exists as long as the object that it is in.
        unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
    }
    process::set_errno(errno);
}

extern "C" fn handle<const WHICH: usize>(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    handle_as(WHICH, signal, info, context);
}

/// The handler number `which`: the first or the second.
fn handle_as(which: usize, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let errno = process::errno();
    // SAFETY: the kernel passes the signal's description.
    let description = unsafe { &*info };
    let code = description.si_code;
    // A signal that a process sent has no address.
    let outcome = if code > 0 { ask(which, description, context) } else { Outcome::Foreign };
    if outcome != Outcome::Resume {
        // SAFETY: the parameters are the kernel's.
        let is_handled = unsafe { pass_on(which, signal, info, context) };
        match outcome {
            Outcome::Fatal => process::abort(),
            // The access is made again, and ends the process. What was sent would not come again.
            _ if !is_handled && code <= 0 => {
                // SAFETY: the call sends this thread a signal.
                unsafe { libc::raise(signal) };
            }
            _ => {}
        }
    }
    process::set_errno(errno);
}

fn ask(which: usize, info: &libc::siginfo_t, context: *mut c_void) -> Outcome {
    // SAFETY: the kernel passes the description of a fault, which has an address.
    let address = unsafe { info.si_addr() }.addr();
    if which == 1 {
        ASKED.store(address, Ordering::Relaxed);
    } else if ASKED.load(Ordering::Relaxed) == address && IS_RENEWED.load(Ordering::Relaxed) {
        // The handler between the two passes on what the second one has passed on.
        return Outcome::Foreign;
    }
    let hook = HOOK.load(Ordering::Acquire);
    // SAFETY: the pointer is that of the function which `install` stored before it installed the handler.
    let hook: Hook = unsafe { mem::transmute::<*mut c_void, Hook>(hook) };
    // SAFETY: the kernel passes the context of the thread, to handlers installed with `SA_SIGINFO`.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    let (registers, is_write) = Registers::of_context(context).unzip();
    hook(&Fault { address, is_write: is_write.flatten(), registers })
}

/// Calls the handler that was there before, with the signals blocked that it asked for; does nothing if the signal was ignored and a process sent it.
/// `false` if the signal's default is what happens next: there is no handler, or one that asked to be called once and was, or an ignored signal stands for a
/// fault, which the kernel lets nobody ignore.
///
/// # Safety
/// - The parameters are those that the kernel called [`handle`] with.
unsafe fn pass_on(which: usize, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) -> bool {
    let at = usize::from(signal != SIGNALS[0]);
    // SAFETY: `place` has stored it before the kernel knew the handler, and nothing writes to it since.
    let previous = unsafe { &*PREVIOUS[which].0[at].get().cast::<libc::sigaction>() };
    // SAFETY: the kernel passes the signal's description.
    if previous.sa_sigaction == libc::SIG_IGN && unsafe { (*info).si_code } <= 0 {
        return true;
    }
    let is_used = previous.sa_flags & libc::SA_RESETHAND != 0 && IS_USED[which][at].swap(true, Ordering::Relaxed);
    if is_used || previous.sa_sigaction == libc::SIG_DFL || previous.sa_sigaction == libc::SIG_IGN {
        // SAFETY: a `sigaction` of zeros asks for the default.
        let default: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: the structure asks for the default.
        unsafe { libc::sigaction(signal, &default, ptr::null_mut()) };
        return false;
    }
    let how = if previous.sa_flags & libc::SA_NODEFER == 0 { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    let before = change_blocked(how, set_of(signal));
    // SAFETY: the call reads the set.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &previous.sa_mask, ptr::null_mut()) };
    if previous.sa_flags & libc::SA_SIGINFO == 0 {
        type Plain = extern "C" fn(c_int);
        // SAFETY: the program declared a handler that takes a number.
        let handler = unsafe { mem::transmute::<usize, Plain>(previous.sa_sigaction) };
        handler(signal);
    } else {
        type Informed = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
        // SAFETY: the program declared a handler that takes all three.
        let handler = unsafe { mem::transmute::<usize, Informed>(previous.sa_sigaction) };
        handler(signal, info, context);
    }
    signal_mask::set_back(before);
    true
}
