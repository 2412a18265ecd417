//! Weak symbols, which the program or its C library may not define.
#![allow(unsafe_code)]
//!
//! | symbols | of | for |
//! |---|---|---|
//! | `freestone_options` | the program | `options` |
//! | `_IO_list_lock`, `_IO_list_unlock`, `_IO_list_resetlock` | glibc | `fork` |
//! | `freestone_0_1_0_mallocs` | the crate `capi` | `thread` |
//!
//! Rust has no weak symbols: the assembler stores the addresses in a table, and the linker and the loader fill it in. Link-time optimisation puts
//! this text beside the program's definition of `freestone_options`, where `.weak` would contradict it: `.weakref` makes only this reference weak.
//!
//! # Safety
//! An address is null where no object defines the symbol, and then nothing is called or read. `freestone_options` must be a C string where a program
//! defines it, and `freestone_0_1_0_mallocs` two addresses: what the name `malloc` is bound to, and the object's own.

use core::ffi::{CStr, c_char};

core::arch::global_asm!(
    ".weakref freestone_0_1_0_options, freestone_options",
    ".weak _IO_list_lock",
    ".weak _IO_list_unlock",
    ".weak _IO_list_resetlock",
    ".weakref freestone_0_1_0_weak_mallocs, freestone_0_1_0_mallocs",
    ".pushsection .data.rel.ro.freestone_0_1_0_weak,\"aw\",@progbits",
    ".globl freestone_0_1_0_weak",
    ".hidden freestone_0_1_0_weak",
    ".p2align 3",
    "freestone_0_1_0_weak:",
    ".quad freestone_0_1_0_options",
    ".quad _IO_list_lock",
    ".quad _IO_list_unlock",
    ".quad _IO_list_resetlock",
    ".quad freestone_0_1_0_weak_mallocs",
    ".popsection",
);

/// The addresses, as above.
#[repr(C)]
struct Addresses {
    options: *const c_char,
    lock: Option<unsafe extern "C" fn()>,
    unlock: Option<unsafe extern "C" fn()>,
    reset: Option<unsafe extern "C" fn()>,
    mallocs: Option<&'static [usize; 2]>,
}

#[cfg(not(miri))]
unsafe extern "C" {
    #[link_name = "freestone_0_1_0_weak"]
    static ADDRESSES: Addresses;
}

/// The table. Miri has no assembler: there, no symbol is defined.
#[cfg(miri)]
fn addresses() -> &'static Addresses {
    &Addresses { options: core::ptr::null(), lock: None, unlock: None, reset: None, mallocs: None }
}

/// The table.
#[cfg(not(miri))]
fn addresses() -> &'static Addresses {
    // SAFETY: the assembler has laid the table out as `Addresses` is, and nothing changes it once the object is loaded.
    unsafe { &ADDRESSES }
}

/// The options that the program was linked with; empty without any.
pub fn linked_options() -> &'static [u8] {
    let options = addresses().options;
    if options.is_null() {
        return &[];
    }
    // SAFETY: the program has defined the symbol, and then it is a C string, which is never changed.
    unsafe { CStr::from_ptr(options) }.to_bytes()
}

/// Locks the C library's list of streams; does nothing if the library exports no function for that.
pub fn lock_streams() {
    if let Some(lock) = addresses().lock {
        // SAFETY: the C library's function takes nothing, and may be called by a thread that has the lock already.
        unsafe { lock() };
    }
}

/// Unlocks the list, which this thread has locked.
pub fn unlock_streams() {
    if let Some(unlock) = addresses().unlock {
        // SAFETY: the C library's function takes nothing; this thread has locked the list (`fork` pairs the calls).
        unsafe { unlock() };
    }
}

/// Resets the lock of the list in a forked child, where only the thread that locked it exists.
pub fn reset_streams() {
    if let Some(reset) = addresses().reset {
        // SAFETY: the C library's function takes nothing; no other thread exists that could have the lock (`fork` calls this in a forked child only).
        unsafe { reset() };
    }
}

/// Whether this object has a `malloc`, and the process uses another.
#[must_use]
pub fn has_other_malloc() -> bool {
    addresses().mallocs.is_some_and(|[bound, own]| bound != own)
}

#[cfg(test)]
mod tests;
