//! Keeping the shared object that contains the allocator loaded.
#![allow(unsafe_code)]
//!
//! Blocks, thread-exit hooks and fork handlers outlive a `dlclose`. `libfreestone.so` is linked with `-z nodelete`. A shared library whose
//! own allocator is the crate (a plug-in) is pinned by its constructor, which runs while the loader loads it. Pinning it later, from an
//! allocation, could deadlock: another thread may hold the loader's lock and wait for ours.
//!
//! Cost: a walk along the object's dynamic section, which tells programs, and libraries linked with `-z nodelete`, from plug-ins.
//!
//! # Safety
//! `_DYNAMIC` is the object's dynamic section as the ELF specification has it, or null in an object without one. `dlopen` and `dladdr1` are weak,
//! and null where the C library does not have them (musl has no `dladdr1`, and never unloads).

use core::ffi::{c_char, c_int, c_void};
use core::ptr;

core::arch::global_asm!(
    ".weak _DYNAMIC",
    ".hidden _DYNAMIC",
    ".weak dlopen",
    ".weak dladdr1",
    ".pushsection .data.rel.ro.freestone_0_1_0_object,\"aw\",@progbits",
    ".globl freestone_0_1_0_object",
    ".hidden freestone_0_1_0_object",
    ".p2align 3",
    "freestone_0_1_0_object:",
    ".quad _DYNAMIC",
    ".quad dlopen",
    ".quad dladdr1",
    ".popsection",
);

/// An entry of a dynamic section.
#[repr(C)]
struct Dynamic {
    tag: usize,
    value: usize,
}

/// The beginning of the loader's record of an object (`<link.h>`).
#[repr(C)]
struct LinkMap {
    base: usize,
    /// Empty for the program.
    name: *const c_char,
}

type Dladdr1 = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info, *mut *const LinkMap, c_int) -> c_int;

/// The addresses that the assembler stored above.
#[repr(C)]
struct Object {
    dynamic: *const Dynamic,
    dlopen: Option<unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void>,
    dladdr1: Option<Dladdr1>,
}

unsafe extern "C" {
    #[link_name = "freestone_0_1_0_object"]
    static OBJECT: Object;
}

const DT_NULL: usize = 0;
const DT_FLAGS_1: usize = 0x6fff_fffb;
const DF_1_NODELETE: usize = 0x8;
const DF_1_PIE: usize = 0x0800_0000;
const RTLD_DL_LINKMAP: c_int = 2;

/// Keeps this object loaded until the process ends, unless it stays loaded anyway. Called by its constructor.
pub(super) fn pin() {
    // SAFETY: `_DYNAMIC` is null or this object's dynamic section; `dladdr1` gets an address of this object and places for its answers, `dlopen`
    // the name that the loader gave the object.
    unsafe {
        if flags(OBJECT.dynamic) & (DF_1_NODELETE | DF_1_PIE) != 0 {
            return;
        }
        let (Some(dlopen), Some(dladdr1)) = (OBJECT.dlopen, OBJECT.dladdr1) else { return };
        let mut info = core::mem::MaybeUninit::uninit();
        let mut map: *const LinkMap = ptr::null();
        let here = (&raw const OBJECT).cast();
        if dladdr1(here, info.as_mut_ptr(), &mut map, RTLD_DL_LINKMAP) != 0 && !map.is_null() && *(*map).name != 0 {
            // The handle is never closed.
            dlopen((*map).name, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

/// The flags in a dynamic section; none if there is no section, or it has none.
///
/// # Safety
/// - `entry` is null, or starts a dynamic section.
unsafe fn flags(mut entry: *const Dynamic) -> usize {
    // SAFETY: `entry` is null or in a dynamic section (this function's contract), whose last entry is `DT_NULL`.
    unsafe {
        while !entry.is_null() && (*entry).tag != DT_NULL {
            if (*entry).tag == DT_FLAGS_1 {
                return (*entry).value;
            }
            entry = entry.add(1);
        }
    }
    0
}
