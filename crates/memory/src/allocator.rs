//! The functions of `libfreestone` and of the dynamic loader that the process may have: weak references.
#![allow(unsafe_code)]
//!
//! Rust has no weak symbols: the assembler stores the addresses in a table, and the loader fills it in.
//!
//! # Safety
//! An address is null where no object defines the symbol, or while this library is not relocated, and then nothing is called. `freestone.h`
//! declares the types of the first two.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

core::arch::global_asm!(
    ".weak freestone_checked_range",
    ".weak freestone_check_access",
    ".weak dlsym",
    ".pushsection .data.rel.ro.freestone_memory_weak,\"aw\",@progbits",
    ".globl freestone_memory_weak",
    ".hidden freestone_memory_weak",
    ".p2align 3",
    "freestone_memory_weak:",
    ".quad freestone_checked_range",
    ".quad freestone_check_access",
    ".quad dlsym",
    ".popsection",
);

/// The addresses, as above.
#[repr(C)]
struct Addresses {
    checked_range: Option<unsafe extern "C" fn(*mut *const c_void, *mut usize) -> c_int>,
    check_access: Option<unsafe extern "C" fn(*const c_void, usize, c_int, *const c_char)>,
    dlsym: Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void>,
}

unsafe extern "C" {
    #[link_name = "freestone_memory_weak"]
    static ADDRESSES: Addresses;
}

/// The table.
fn addresses() -> &'static Addresses {
    // SAFETY: the assembler has laid the table out as `Addresses` is, and nothing changes it once the object is loaded.
    unsafe { &ADDRESSES }
}

/// Which addresses are worth a check.
pub(crate) enum CheckedRange {
    /// Not known yet.
    Unknown,
    /// None, for good.
    Nothing,
    /// These: the first, and how many.
    Blocks(usize, usize),
}

/// Which addresses are worth a check.
pub(crate) fn checked_range() -> CheckedRange {
    let Some(checked_range) = addresses().checked_range else { return CheckedRange::Unknown };
    let (mut start, mut bytes) = (ptr::null(), 0);
    // SAFETY: both point to writable places.
    match unsafe { checked_range(&raw mut start, &raw mut bytes) } {
        0 => CheckedRange::Unknown,
        1 => CheckedRange::Blocks(start.addr(), bytes),
        _ => CheckedRange::Nothing,
    }
}

/// Has an access checked.
pub(crate) fn check_access(address: usize, bytes: usize, is_write: bool, function: &'static CStr) {
    if let Some(check_access) = addresses().check_access {
        // SAFETY: the function takes any address, and the name is a C string that is never changed.
        unsafe { check_access(ptr::without_provenance(address), bytes, c_int::from(is_write), function.as_ptr()) };
    }
}

/// Looks up a function in the objects behind this one; null if there is none, or no `dlsym`.
pub(crate) fn next(name: &'static CStr) -> *mut c_void {
    // SAFETY: the name is a C string, and the handle the loader's. Looking up a symbol that is there does not allocate.
    addresses().dlsym.map_or(ptr::null_mut(), |dlsym| unsafe { dlsym(libc::RTLD_NEXT, name.as_ptr()) })
}
