//! Which loaded object an address is in, without a lock: by glibc's `_dl_find_object` (2.35 and later), or by a table of the process's mappings.
#![allow(unsafe_code)]
//!
//! Where the C library has no such function (musl, older glibc), the [`table`] knows the object, but not its name: the older way to ask the loader takes a lock that
//! the thread may hold.
//!
//! # Safety
//! The function fills in the structure that the C library documents. A `link_map`, and the name in it, stay as they are as long as the object is
//! loaded, which it is while a thread runs code of it.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr;
use freestone_base::ptr as address;
use rustix::fs::{CWD, readlinkat_raw};

mod table;

core::arch::global_asm!(
    ".weak _dl_find_object",
    ".pushsection .data.rel.ro.freestone_0_1_0_weak_os,\"aw\",@progbits",
    ".globl freestone_0_1_0_weak_os",
    ".hidden freestone_0_1_0_weak_os",
    ".p2align 3",
    "freestone_0_1_0_weak_os:",
    ".quad _dl_find_object",
    ".popsection",
);

/// The address, as above: null where the C library has no such function.
#[repr(C)]
struct Addresses {
    find_object: Option<unsafe extern "C" fn(*const c_void, *mut FoundObject) -> c_int>,
}

unsafe extern "C" {
    #[link_name = "freestone_0_1_0_weak_os"]
    static ADDRESSES: Addresses;
}

/// The C library's `struct dl_find_object` of 64-bit processors.
#[repr(C)]
struct FoundObject {
    flags: u64,
    map_start: usize,
    map_end: usize,
    link_map: *const LinkMap,
    frame_info: usize,
    reserved: [u64; 7],
}

/// The beginning of the C library's `struct link_map`.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const c_char,
}

/// A loaded object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Module {
    /// What is added to the object's addresses: the difference of an address in the process and one in the file.
    bias: usize,
    name: *const c_char,
    /// Address of its `.eh_frame_hdr`; 0 if it has none.
    pub(crate) frame_info: usize,
    /// Whether it is the program, and no shared object.
    is_program: bool,
}

/// The loaded object that `at` is in. Under Miri there is no loader, and none.
pub(crate) fn find(at: usize) -> Option<Module> {
    if cfg!(miri) {
        return None;
    }
    if has_loader() { find_by_loader(at) } else { find_in_table(at) }
}

fn has_loader() -> bool {
    // SAFETY: the assembler has laid the table out as `Addresses` is, and nothing changes it once the object is loaded.
    unsafe { ADDRESSES.find_object }.is_some()
}

/// Whether what was found of an address holds for good: it is in the program, the object that this code is in, or the C library. Where the C library does not
/// tell about objects it is taken to unload none, as musl's: there, looking again takes long.
pub(crate) fn stays(found: Option<Module>) -> bool {
    let own = find as fn(usize) -> Option<Module> as usize;
    let of_c = libc::getauxval as unsafe extern "C" fn(_) -> _ as usize;
    let is_in = |module: Module| [own, of_c].into_iter().filter_map(find).any(|stays| stays.bias == module.bias);
    !has_loader() || found.is_some_and(|module| module.is_program || is_in(module))
}

fn find_in_table(at: usize) -> Option<Module> {
    let found = table::TABLE.find(at)?;
    Some(Module { bias: found.bias, name: ptr::null(), frame_info: found.frame_info, is_program: is_program(&found) })
}

/// Whether it is the program, which the kernel has loaded.
fn is_program(found: &table::Found) -> bool {
    // SAFETY: getauxval takes any key and touches only the auxiliary vector.
    let entry = unsafe { libc::getauxval(libc::AT_ENTRY) } as usize;
    (found.start..found.end).contains(&entry)
}

/// As [`find`], where the C library has the function.
fn find_by_loader(at: usize) -> Option<Module> {
    // SAFETY: the assembler has laid the table out as `Addresses` is, and nothing changes it once the object is loaded.
    let find_object = unsafe { ADDRESSES.find_object }?;
    let mut found = MaybeUninit::<FoundObject>::uninit();
    // SAFETY: the function takes any address, and `found` has room for the result.
    if unsafe { find_object(address::from_exposed::<c_void>(at), found.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the function succeeded, and has filled in the structure.
    let found = unsafe { found.assume_init() };
    // SAFETY: null, or the record of a loaded object.
    let map = unsafe { found.link_map.as_ref() }?;
    // SAFETY: a name that is not null is a C string as long as the object is loaded.
    let is_program = map.name.is_null() || unsafe { CStr::from_ptr(map.name) }.is_empty();
    Some(Module { bias: map.bias, name: map.name, frame_info: found.frame_info, is_program })
}

/// A code address as people and `addr2line` read it: `0x7f12345678ab /usr/lib/libm.so.6+0x1234`, the address in the object's file.
#[derive(Clone, Copy, Debug)]
pub struct CodeAddress(pub usize);

impl fmt::Display for CodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)?;
        let Some(module) = find(self.0) else { return Ok(()) };
        let mut buffer = [0u8; 256];
        write!(f, " {}+{:#x}", module.name(&mut buffer), self.0.wrapping_sub(module.bias))
    }
}

impl CodeAddress {
    /// Whether it is in the shared object that this library is in. `false` of every address if the library is part of the program itself.
    #[must_use]
    pub fn is_of_this_library(self) -> bool {
        let here = find(find as fn(usize) -> Option<Module> as usize);
        let is_same = |module: Module| here.is_some_and(|here| here.bias == module.bias && !here.is_program);
        find(self.0).is_some_and(is_same)
    }
}

impl Module {
    /// The object's file; the program's own name is asked of the kernel.
    fn name<'a>(&self, buffer: &'a mut [u8]) -> &'a str {
        const UNKNOWN: &str = "?";
        if !self.is_program && self.name.is_null() {
            return UNKNOWN;
        }
        if !self.is_program {
            // SAFETY: the name of a shared object is a C string as long as the object is loaded.
            return unsafe { CStr::from_ptr(self.name) }.to_str().unwrap_or(UNKNOWN);
        }
        let Ok(len) = readlinkat_raw(CWD, c"/proc/self/exe", &mut *buffer) else { return UNKNOWN };
        buffer.get(..len).and_then(|name| core::str::from_utf8(name).ok()).unwrap_or(UNKNOWN)
    }
}

#[cfg(test)]
mod tests;
