//! Which loaded object an address is in, without a lock: by glibc's `_dl_find_object` (2.35 and later), or by a table of the process's mappings.
#![allow(unsafe_code)]
//!
//! Where the C library has no such function (musl, older glibc), and in programs that it is linked into, the [`table`] knows the object, but not its name: the
//! older way to ask the loader takes a lock that the thread may hold.
//!
//! # Safety
//! The function fills in the structure that the C library documents. The `link_map` that it names is freed when another thread unloads the object, which
//! may be at any moment: an address is often one that was stored long ago. So nobody follows the pointer; who writes the object's name
//! reads it with the kernel's leave (`readable`).

use crate::readable::Reader;
use core::ffi::{c_int, c_void};
use core::fmt;
use core::mem::MaybeUninit;
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
    ".weak _dl_non_dynamic_init",
    ".quad _dl_non_dynamic_init",
    ".popsection",
);

/// The addresses, as above: null where the C library has no such function.
#[repr(C)]
struct Addresses {
    find_object: Option<unsafe extern "C" fn(*const c_void, *mut FoundObject) -> c_int>,
    /// Only in programs that glibc is linked into.
    of_static_program: usize,
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
    /// A pointer to the `struct link_map`, which begins with the object's bias and a pointer to its name.
    link_map: usize,
    frame_info: usize,
    reserved: [u64; 7],
}

/// A loaded object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Module {
    /// Where it starts and ends; of an object in the [`table`], the mapping that the address is in.
    start: usize,
    end: usize,
    source: Source,
    /// Address of its `.eh_frame_hdr`; 0 if it has none.
    pub(crate) frame_info: usize,
}

/// Who knows an object, and by what: no other loaded object has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The C library, by the address of the `link_map`, which may have been freed.
    Loader { link_map: usize },
    /// The [`table`], by the bias.
    Table { bias: usize },
}

/// The loaded object that `at` is in. Under Miri there is no loader, and none.
pub(crate) fn find(at: usize) -> Option<Module> {
    if cfg!(miri) {
        return None;
    }
    if has_loader() { find_by_loader(at) } else { find_in_table(at) }
}

/// Whether the C library is asked. In a static program it allocates before its function may be called.
fn has_loader() -> bool {
    // SAFETY: the assembler has laid the table out as `Addresses` is, and nothing changes it once the object is loaded.
    let addresses = unsafe { &ADDRESSES };
    addresses.find_object.is_some() && addresses.of_static_program == 0
}

/// Whether what was found of an address holds for good: it is in the program, the object that this code is in, or the C library. Where the C library does not
/// tell about objects it is taken to unload none, as musl's: there, looking again takes long.
pub(crate) fn stays(found: Option<Module>) -> bool {
    let own = find as fn(usize) -> Option<Module> as usize;
    let of_c = libc::getauxval as unsafe extern "C" fn(_) -> _ as usize;
    let is_in = |module: Module| [own, of_c].into_iter().filter_map(find).any(|stays| stays.source == module.source);
    !has_loader() || found.is_some_and(|module| module.is_program() || is_in(module))
}

/// A function of its own, because it needs much of the stack.
#[inline(never)]
fn find_in_table(at: usize) -> Option<Module> {
    let found = table::TABLE.find(at)?;
    let source = Source::Table { bias: found.bias };
    Some(Module { start: found.start, end: found.end, source, frame_info: found.frame_info })
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
    Module::of_loader(&unsafe { found.assume_init() })
}

/// A code address as people and `addr2line` read it: `0x7f12345678ab /usr/lib/libm.so.6+0x1234`, the address in the object's file.
#[derive(Clone, Copy, Debug)]
pub struct CodeAddress(pub usize);

impl fmt::Display for CodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)?;
        let Some(module) = find(self.0) else { return Ok(()) };
        let mut buffer = [0u8; 512];
        let Some((bias, name)) = module.bias_and_name(&mut buffer) else { return Ok(()) };
        write!(f, " {name}+{:#x}", self.0.wrapping_sub(bias))
    }
}

impl CodeAddress {
    /// Whether it is in the shared object that this library is in. `false` of every address if the library is part of the program itself.
    #[must_use]
    pub fn is_of_this_library(self) -> bool {
        let here = find(find as fn(usize) -> Option<Module> as usize);
        let is_same = |module: Module| here.is_some_and(|here| here.source == module.source && !here.is_program());
        find(self.0).is_some_and(is_same)
    }
}

impl Module {
    /// What the C library has found.
    fn of_loader(found: &FoundObject) -> Option<Self> {
        let &FoundObject { map_start: start, map_end: end, link_map, frame_info, .. } = found;
        (link_map != 0).then_some(Self { start, end, source: Source::Loader { link_map }, frame_info })
    }

    /// Whether it is the program, and no shared object: the process's code starts in it.
    fn is_program(&self) -> bool {
        // SAFETY: getauxval takes any key and touches only the auxiliary vector.
        let entry = unsafe { libc::getauxval(libc::AT_ENTRY) } as usize;
        (self.start..self.end).contains(&entry)
    }

    /// What is added to the object's addresses (the difference of an address in the process and one in the file), and the object's file; the program's own name is
    /// asked of the kernel. Nothing if the object was unloaded.
    fn bias_and_name<'a>(&self, buffer: &'a mut [u8]) -> Option<(usize, &'a str)> {
        let mut reader = Reader::new();
        let (bias, name) = match self.source {
            Source::Loader { link_map } => (reader.word(link_map)?, reader.word(link_map + size_of::<usize>())?),
            Source::Table { bias } => (bias, 0),
        };
        let len = if self.is_program() {
            readlinkat_raw(CWD, c"/proc/self/exe", &mut *buffer).unwrap_or(0)
        } else {
            read_text(&mut reader, name, buffer)
        };
        let name = buffer.get(..len).filter(|name| !name.is_empty());
        Some((bias, name.and_then(|name| core::str::from_utf8(name).ok()).unwrap_or("?")))
    }
}

/// Copies the C string at `at` to `buffer`, as far as it can be read and there is room. Returns its length.
fn read_text(reader: &mut Reader, at: usize, buffer: &mut [u8]) -> usize {
    let bytes = (at..usize::MAX).map_while(|at| reader.bytes::<1>(at)).map_while(|[byte]| (byte != 0).then_some(byte));
    buffer.iter_mut().zip(bytes).map(|(to, byte)| *to = byte).count()
}

#[cfg(test)]
mod tests;
