//! Whose functions the process uses.
#![allow(unsafe_code)]
//!
//! The loader binds each name to the first object of the process that defines it. A program that brings its own `malloc`, or replaces some
//! operators, comes before a preloaded library. [`bindings`] has the addresses that the names are bound to here. `choice` compares them with
//! the library's own functions once, in a constructor:
//!
//! ```text
//!  all are ours ────────────────────────▶ the shortcut stays open: hot paths
//!  an operator is the program's ────────▶ closed: each form calls the one that the standard says, through the bindings
//!  malloc, free or aligned_alloc is ────▶ closed, and the forms at the bottom call these, through the bindings
//! ```
//!
//! An address may be that of a stub in the program: where a program that is not position-independent takes the address of a function, that stub is
//! the function's address for the whole process. What a call is bound to says the slot that the loader fills for it; the library has such slots,
//! because the code that `calls!` makes, which is never run, calls those
//! functions whose addresses programs take.
//!
//! # Safety
//! The names have the types that the C and C++ standards say, whoever defines them. `__ehdr_start` and `_DYNAMIC` are the object's ELF header and
//! its dynamic section, or null in an object without. The loader has filled the slots before constructors run (the library is linked with
//! `-z now`), or they contain the address of a stub.

use super::shortcut::Shortcut;
use super::slots::{Dynamic, Header};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use heap::door::Family;

pub(super) type New = unsafe extern "C" fn(usize) -> *mut c_void;
pub(super) type NewAligned = unsafe extern "C" fn(usize, usize) -> *mut c_void;
pub(super) type Delete = unsafe extern "C" fn(*mut c_void);
pub(super) type DeleteAligned = unsafe extern "C" fn(*mut c_void, usize);
/// A function that the program gave `std::set_new_handler`.
pub(super) type Handler = unsafe extern "C" fn();

/// Calls functions by the instruction that makes the linker provide a slot.
macro_rules! calls {
    ($($instruction:literal),*) => {
        core::arch::global_asm!(
            ".pushsection .text.freestone_0_1_0_calls,\"ax\",@progbits",
            "freestone_0_1_0_calls:",
            $($instruction,)*
            ".popsection",
        );
    };
}

#[cfg(target_arch = "x86_64")]
calls!("call malloc@PLT", "call free@PLT", "call _Znwm@PLT", "call _ZdlPv@PLT");

#[cfg(target_arch = "aarch64")]
calls!("bl malloc", "bl free", "bl _Znwm", "bl _ZdlPv");

#[cfg(target_arch = "riscv64")]
calls!("call malloc@plt", "call free@plt", "call _Znwm@plt", "call _ZdlPv@plt");

core::arch::global_asm!(
    ".weak _DYNAMIC",
    ".hidden _DYNAMIC",
    ".weak __ehdr_start",
    ".hidden __ehdr_start",
    ".weak dlsym",
    ".weak dlopen",
    ".weak _ZSt15get_new_handlerv",
    ".weak _ZSt17__throw_bad_allocv",
    ".pushsection .data.rel.ro.freestone_0_1_0_bindings,\"aw\",@progbits",
    ".globl freestone_0_1_0_bindings",
    ".hidden freestone_0_1_0_bindings",
    ".p2align 3",
    "freestone_0_1_0_bindings:",
    ".quad malloc",
    ".quad free",
    ".quad aligned_alloc",
    ".quad _Znwm",
    ".quad _Znam",
    ".quad _ZnwmSt11align_val_t",
    ".quad _ZnamSt11align_val_t",
    ".quad _ZdlPv",
    ".quad _ZdaPv",
    ".quad _ZdlPvSt11align_val_t",
    ".quad _ZdaPvSt11align_val_t",
    ".quad _ZSt15get_new_handlerv",
    ".quad _ZSt17__throw_bad_allocv",
    ".quad dlsym",
    ".quad dlopen",
    ".quad _DYNAMIC",
    ".quad __ehdr_start",
    ".quad freestone_0_1_0_calls",
    // Second names, which the loader binds to nothing else.
    ".set freestone_0_1_0_malloc, malloc",
    ".set freestone_0_1_0_free, free",
    ".set freestone_0_1_0_aligned_alloc, aligned_alloc",
    ".quad freestone_0_1_0_malloc",
    ".quad freestone_0_1_0_free",
    ".quad freestone_0_1_0_aligned_alloc",
    // For `weak_symbols` of `os`.
    ".globl freestone_0_1_0_mallocs",
    ".hidden freestone_0_1_0_mallocs",
    "freestone_0_1_0_mallocs:",
    ".quad malloc",
    ".quad freestone_0_1_0_malloc",
    ".popsection",
);

/// The addresses that the assembler stored above.
#[repr(C)]
pub(super) struct Bindings {
    pub(super) malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    pub(super) free: unsafe extern "C" fn(*mut c_void),
    pub(super) aligned_alloc: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    pub(super) operators: Operators,
    pub(super) runtime: Runtime,
    pub(super) object: Object,
}

/// The operators by which the others are defined.
#[repr(C)]
pub(super) struct Operators {
    pub(super) new: New,
    pub(super) new_array: New,
    pub(super) new_aligned: NewAligned,
    pub(super) new_array_aligned: NewAligned,
    pub(super) delete: Delete,
    pub(super) delete_array: Delete,
    pub(super) delete_aligned: DeleteAligned,
    pub(super) delete_array_aligned: DeleteAligned,
}

/// What the process may have of a C++ runtime, and what finds more.
#[repr(C)]
pub(super) struct Runtime {
    pub(super) get_new_handler: Option<unsafe extern "C" fn() -> Option<Handler>>,
    pub(super) throw_bad_alloc: Option<unsafe extern "C" fn() -> !>,
    pub(super) dlsym: Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void>,
    pub(super) dlopen: Option<unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void>,
}

/// This object, and its own functions, whoever the names are bound to.
#[repr(C)]
pub(super) struct Object {
    pub(super) dynamic: *const Dynamic,
    pub(super) header: *const Header,
    _calls: usize,
    pub(super) malloc: usize,
    pub(super) free: usize,
    pub(super) aligned_alloc: usize,
}

unsafe extern "C" {
    #[link_name = "freestone_0_1_0_bindings"]
    static BOUND: Bindings;
}

/// What the names are bound to.
pub(super) fn bindings() -> &'static Bindings {
    // SAFETY: the assembler stored the addresses, in the order of the fields; they do not change after the object is loaded.
    unsafe { &*core::ptr::addr_of!(BOUND) }
}

/// Looks a function up in what was loaded after this object.
pub(crate) fn find_behind(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the loader knows this handle.
    unsafe { find(libc::RTLD_NEXT, name) }
}

/// Looks a function up.
///
/// # Safety
/// - `handle` is the loader's.
pub(super) unsafe fn find(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the handle is the loader's (this function's contract), and the name a C string.
    Some(unsafe { bindings().runtime.dlsym?(handle, name.as_ptr()) }).filter(|found| !found.is_null())
}

/// The hot paths, unless a function of the program has to be called.
pub(super) static SHORTCUT: Shortcut = Shortcut::new();

/// Whether memory comes from a `malloc` that is not the library's.
static FOLLOWS: AtomicBool = AtomicBool::new(false);

/// Whether memory comes from a `malloc` that is not the library's.
pub(crate) fn follows() -> bool {
    FOLLOWS.load(Ordering::Relaxed)
}

/// The family of a form's blocks. Where the program has functions of its own, blocks of one family pass to another: all count as C's.
pub(super) fn told_apart(family: Family) -> Family {
    if SHORTCUT.is_open() { family } else { Family::C }
}

/// Has the operators call what the names are bound to; `follows`: `malloc` and `free`, too.
///
/// # Safety
/// - No code uses the operators yet.
pub(super) unsafe fn call_bound(follows: bool) {
    FOLLOWS.store(follows, Ordering::Relaxed);
    // SAFETY: no code uses the shortcut yet (this function's contract).
    unsafe { SHORTCUT.close() };
}
