//! The C library's lock of its list of streams, which comes before our locks at a fork.
#![allow(unsafe_code)]
//!
//! glibc's `fork` runs the prepare handlers, ours the last, then locks its list of streams, then its own `malloc`, so that a thread with the
//! list's lock may allocate. Our locks come too early: while they are held, `fork` waits for the list, whose holder (`fflush(NULL)`) waits
//! for a stream, whose holder (`getdelim`) allocates (glibc's bug 19431). So the handler takes the list's lock first, by the functions that
//! glibc exports for that.
//!
//! | | glibc itself | we |
//! |---|---|---|
//! | before | locks, after our handler: the lock is recursive | lock |
//! | in the parent | unlocks | unlock |
//! | in the child of several threads | resets, before our handler | reset: it is free |
//! | in the child of one thread | nothing | reset: the only thread held it |
//!
//! Rests on: `_IO_list_lock`, `_IO_list_unlock` and `_IO_list_resetlock` at version `GLIBC_2.2.5` (on AArch64 `GLIBC_2.17`), there in every
//! glibc so far; the table agrees with the sources of 2.27, 2.33, 2.36 and 2.42. Tested with 2.36.
//!
//! Remains: what `fork` locks between our handler and the list. That is the database of name services, whose holder may allocate when
//! `/etc/nsswitch.conf` is read (the first time, or when it has changed), and in 2.42 the list of `popen`'s children, whose holder
//! allocates in `popen` while others are open. And musl: its `fork` locks its list of streams after all handlers, too, and it exports no
//! function to lock it before.
//!
//! # Safety
//! The symbols are weak: their addresses are null where the C library has none, and then nothing is called.

core::arch::global_asm!(
    ".weak _IO_list_lock",
    ".weak _IO_list_unlock",
    ".weak _IO_list_resetlock",
    ".pushsection .data.rel.ro.freestone_0_1_0_stdio,\"aw\",@progbits",
    ".globl freestone_0_1_0_stdio",
    ".hidden freestone_0_1_0_stdio",
    ".p2align 3",
    "freestone_0_1_0_stdio:",
    ".quad _IO_list_lock",
    ".quad _IO_list_unlock",
    ".quad _IO_list_resetlock",
    ".popsection",
);

/// The functions' addresses, as above.
#[repr(C)]
struct ListLock {
    lock: Option<unsafe extern "C" fn()>,
    unlock: Option<unsafe extern "C" fn()>,
    reset: Option<unsafe extern "C" fn()>,
}

unsafe extern "C" {
    #[link_name = "freestone_0_1_0_stdio"]
    static LIST: ListLock;
}

/// Before a fork.
pub(super) fn lock() {
    // SAFETY: see the module header; the function takes nothing, and may be called by any thread that will unlock.
    unsafe { LIST.lock.map(|lock| lock()) };
}

/// After a fork, in the parent.
pub(super) fn unlock() {
    // SAFETY: as above; this thread locked it before the fork.
    unsafe { LIST.unlock.map(|unlock| unlock()) };
}

/// After a fork, in the child: the list is locked by nobody from now on.
pub(super) fn reset() {
    // SAFETY: as above; no other thread exists.
    unsafe { LIST.reset.map(|reset| reset()) };
}
