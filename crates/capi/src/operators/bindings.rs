//! Whose functions the process uses.
#![allow(unsafe_code)]
//!
//! The loader binds each name to the first object of the process that defines it. A program that brings its own `malloc`, or replaces some
//! operators, comes before a preloaded library. [`BINDINGS`] has the addresses that the names are bound to here, and [`decide`] compares
//! them with the library's own functions once, in a constructor:
//!
//! ```text
//!  all are ours ────────────────────────▶ the shortcut stays open: hot paths
//!  an operator is the program's ────────▶ closed: each form calls the one that the standard says, through BINDINGS
//!  malloc, free or aligned_alloc is ────▶ closed, and the forms at the bottom call these, through BINDINGS
//! ```
//!
//! An address may be that of a stub in the program: where a program that is not position-independent takes the address of a function, that stub is
//! the function's address for the whole process. What a call is bound to says the slot that the loader fills for it; the library has such slots,
//! because [`CALLS`] calls each function.
//!
//! # Safety
//! The names have the types that the C and C++ standards say, whoever defines them. `__ehdr_start` and `_DYNAMIC` are the object's ELF header and
//! its dynamic section, or null in an object without. The loader has filled the slots before constructors run (the library is linked with
//! `-z now`), or they contain the address of a stub.

use super::slots::{self, Dynamic, Header};
use super::{delete, new};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use heap::door::Shortcut;

pub(super) type New = unsafe extern "C" fn(usize) -> *mut c_void;
pub(super) type NewAligned = unsafe extern "C" fn(usize, usize) -> *mut c_void;
pub(super) type Delete = unsafe extern "C" fn(*mut c_void);
pub(super) type DeleteAligned = unsafe extern "C" fn(*mut c_void, usize);
/// A function that the program gave `std::set_new_handler`.
pub(super) type Handler = unsafe extern "C" fn();

/// Calls each function that may be the program's, by the instruction that makes the linker provide a slot.
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
calls! {
    "call malloc@PLT", "call free@PLT", "call aligned_alloc@PLT", "call _Znwm@PLT", "call _Znam@PLT", "call _ZnwmSt11align_val_t@PLT",
    "call _ZnamSt11align_val_t@PLT", "call _ZdlPv@PLT", "call _ZdaPv@PLT", "call _ZdlPvSt11align_val_t@PLT", "call _ZdaPvSt11align_val_t@PLT"
}

#[cfg(target_arch = "aarch64")]
calls! {
    "bl malloc", "bl free", "bl aligned_alloc", "bl _Znwm", "bl _Znam", "bl _ZnwmSt11align_val_t", "bl _ZnamSt11align_val_t", "bl _ZdlPv",
    "bl _ZdaPv", "bl _ZdlPvSt11align_val_t", "bl _ZdaPvSt11align_val_t"
}

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
    ".popsection",
);

/// The addresses that the assembler stored above.
#[repr(C)]
pub(super) struct Bindings {
    pub(super) malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    pub(super) free: unsafe extern "C" fn(*mut c_void),
    pub(super) aligned_alloc: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    pub(super) new: New,
    pub(super) new_array: New,
    pub(super) new_aligned: NewAligned,
    pub(super) new_array_aligned: NewAligned,
    pub(super) delete: Delete,
    pub(super) delete_array: Delete,
    pub(super) delete_aligned: DeleteAligned,
    pub(super) delete_array_aligned: DeleteAligned,
    pub(super) get_new_handler: Option<unsafe extern "C" fn() -> Option<Handler>>,
    pub(super) throw_bad_alloc: Option<unsafe extern "C" fn() -> !>,
    pub(super) dlsym: Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void>,
    pub(super) dlopen: Option<unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void>,
    dynamic: *const Dynamic,
    header: *const Header,
    calls: usize,
    our_malloc: usize,
    our_free: usize,
    our_aligned_alloc: usize,
}

// SAFETY: nothing writes what the fields point to.
unsafe impl Sync for Bindings {}

unsafe extern "C" {
    #[link_name = "freestone_0_1_0_bindings"]
    static BOUND: Bindings;
}

/// What the names are bound to.
pub(super) fn bindings() -> &'static Bindings {
    // SAFETY: the assembler stored the addresses, in the order of the fields; they do not change after the object is loaded.
    unsafe { &*core::ptr::addr_of!(BOUND) }
}

/// The hot paths, unless a function of the program has to be called.
pub(super) static SHORTCUT: Shortcut = Shortcut::new();

/// Whether memory comes from the program's own `malloc`.
static FOLLOWS: AtomicBool = AtomicBool::new(false);

/// Whether memory comes from a `malloc` that is not the library's.
pub(super) fn follows() -> bool {
    FOLLOWS.load(Ordering::Relaxed)
}

/// Among the first constructors of the object.
#[used]
#[unsafe(link_section = ".init_array.00000")]
static AT_LOAD: extern "C" fn() = decide;

/// Decides once whose functions the operators call.
extern "C" fn decide() {
    let bound = bindings();
    let allocators = [
        (bound.malloc as usize, bound.our_malloc),
        (bound.free as usize, bound.our_free),
        (bound.aligned_alloc as usize, bound.our_aligned_alloc),
    ];
    let operators = [
        (bound.new as usize, new::new as *const () as usize),
        (bound.new_array as usize, new::new_array as *const () as usize),
        (bound.new_aligned as usize, new::new_aligned as *const () as usize),
        (bound.new_array_aligned as usize, new::new_array_aligned as *const () as usize),
        (bound.delete as usize, delete::delete as *const () as usize),
        (bound.delete_array as usize, delete::delete_array as *const () as usize),
        (bound.delete_aligned as usize, delete::delete_aligned as *const () as usize),
        (bound.delete_array_aligned as usize, delete::delete_array_aligned as *const () as usize),
    ];
    let is_ours = |&(address, ours): &(usize, usize)| {
        // SAFETY: header and section are this object's, and the loader has relocated it before it runs constructors.
        address == ours || unsafe { slots::contain(bound.header, bound.dynamic, ours) }
    };
    let follows = !allocators.iter().all(is_ours);
    if follows || !operators.iter().all(is_ours) {
        FOLLOWS.store(follows, Ordering::Relaxed);
        // SAFETY: the loader runs the constructor before anybody calls a function of the object.
        unsafe { SHORTCUT.close() };
    }
}
