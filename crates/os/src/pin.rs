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
pub fn pin() {
    // SAFETY: the assembler has stored the addresses, and nothing changes them.
    let object = unsafe { &OBJECT };
    // SAFETY: the linker makes `_DYNAMIC` the object's dynamic section, or null.
    if unsafe { flags(object.dynamic) } & (DF_1_NODELETE | DF_1_PIE) != 0 {
        return;
    }
    let (Some(dlopen), Some(map)) = (object.dlopen, object.dladdr1.and_then(link_map)) else { return };
    // SAFETY: the loader's record of an object has a C string for its name.
    if unsafe { *map.name } != 0 {
        // SAFETY: the name is that of a loaded object. The handle is never closed.
        unsafe { dlopen(map.name, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    }
}

/// The loader's record of this object.
fn link_map(dladdr1: Dladdr1) -> Option<&'static LinkMap> {
    let mut info = core::mem::MaybeUninit::uninit();
    let mut map: *const LinkMap = ptr::null();
    let here = (&raw const OBJECT).cast();
    // SAFETY: `here` is an address of this object, and there is room for both answers.
    let is_found = unsafe { dladdr1(here, info.as_mut_ptr(), &mut map, RTLD_DL_LINKMAP) } != 0;
    // SAFETY: null, or the loader's record of this object, which is loaded while its code runs.
    if is_found { unsafe { map.as_ref() } } else { None }
}

/// The flags in a dynamic section; none if there is no section, or it has none.
///
/// # Safety
/// - `entry` is null, or starts a dynamic section.
unsafe fn flags(mut entry: *const Dynamic) -> usize {
    // SAFETY: null, or in a dynamic section (this function's contract): its last entry is `DT_NULL`, where the loop ends.
    while let Some(&Dynamic { tag, value }) = unsafe { entry.as_ref() } {
        match tag {
            DT_NULL => break,
            DT_FLAGS_1 => return value,
            _ => entry = entry.wrapping_add(1),
        }
    }
    0
}

#[cfg(test)]
mod tests;
