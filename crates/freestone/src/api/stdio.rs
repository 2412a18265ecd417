//! The lock of the C library's list of streams: at a fork it is taken before the allocator's locks.
#![allow(unsafe_code)]
//!
//! glibc's `fork` runs the prepare handlers, ours the last, then locks its list of streams, then its own `malloc`: in this order a thread that
//! holds the list's lock may allocate. Our locks are taken too early for that. While we hold them, `fork` waits for the list, whose holder
//! (`fflush(NULL)`) waits for a stream, whose holder (`getdelim`) allocates and waits for us (glibc's bug 19431). So our handler takes the
//! list's lock first, by the functions that glibc exports for that.
//!
//! | | glibc itself | we |
//! |---|---|---|
//! | before | locks, after our handler: the lock is recursive | lock |
//! | in the parent | unlocks | unlock |
//! | in the child of several threads | resets, before our handler | reset: it is free |
//! | in the child of one thread | nothing | reset: the only thread held it |
//!
//! This relies on `_IO_list_lock`, `_IO_list_unlock` and `_IO_list_resetlock` at version `GLIBC_2.2.5` (on AArch64 `GLIBC_2.17`), which every
//! glibc so far exports. The table agrees with the sources of 2.27, 2.33, 2.36 and 2.42; tested with 2.36.
//!
//! Not covered are the locks that `fork` takes between our handler and the list: that of the database of name services, whose holder may
//! allocate when it reads `/etc/nsswitch.conf` (the first time, or when the file has changed), and in 2.42 that of the list of `popen`'s
//! children, whose holder allocates in `popen` while others are open. Nor is musl covered: its `fork` locks its list of streams after all
//! handlers, too, and it exports no function to lock the list before.
//!
//! # Safety
//! The symbols are weak: where the C library does not have them their addresses are null, and nothing is called.

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

/// Locks the list, before a fork.
pub(super) fn lock() {
    // SAFETY: the address is null or that of the C library's function, which takes nothing; this thread, or its copy in the child, will unlock.
    unsafe { LIST.lock.map(|lock| lock()) };
}

/// Unlocks the list after a fork, in the parent.
pub(super) fn unlock() {
    // SAFETY: as in `lock`; this thread locked the list before the fork.
    unsafe { LIST.unlock.map(|unlock| unlock()) };
}

/// Resets the lock after a fork, in the child: it is free from now on.
pub(super) fn reset() {
    // SAFETY: as in `lock`; no other thread exists in the child, so none holds the lock.
    unsafe { LIST.reset.map(|reset| reset()) };
}
