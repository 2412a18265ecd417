//! Whether a part of the process allocates by other operators than the rest.
#![allow(unsafe_code)]
//!
//! A library that is loaded so that it prefers its own functions (`RTLD_DEEPBIND`, with the option `deepbind` on or in a program that is linked with
//! the archive) takes the operators of the C++ runtime, which call `malloc` and `free`. It shares blocks with the program: one that `malloc`
//! allocated is deleted by `operator delete`. In such a process a block of the wrong family is no crime. So before one is reported, the slots
//! through which the objects call operators are looked at:
//!
//! ```text
//!  object ─▶ dynamic section ─▶ relocations ─▶ the symbol is an operator ─▶ its slot: in this object, or in the calling one (not bound yet)?
//! ```
//!
//! # Safety
//! The loader passes each object's program headers, which stay while it calls back. An object's dynamic section, symbols and strings are as the ELF
//! specification has them, and loaded.

use super::bindings::find;
use super::exports;
use super::slots::{DT_JMPREL, DT_PLTRELSZ, Dynamic, Relocation};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

/// A symbol.
#[repr(C)]
struct Symbol {
    name: u32,
    _info: u32,
    _value: usize,
    _bytes: usize,
}

const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_RELA: usize = 7;
const DT_RELASZ: usize = 8;

/// A mixture was found. It stays: blocks of the library's may be left when it is unloaded.
static IS_MIXED: AtomicBool = AtomicBool::new(false);

/// Whether the whole process has the operators that are here.
pub(super) fn has_none() -> bool {
    if !IS_MIXED.load(Ordering::Relaxed) && (replaces_any() || calls_others()) {
        IS_MIXED.store(true, Ordering::Relaxed);
    }
    !IS_MIXED.load(Ordering::Relaxed)
}

/// Whether an object calls other operators.
fn calls_others() -> bool {
    // SAFETY: the callback has this type, and keeps nothing that it is passed.
    let found = unsafe { libc::dl_iterate_phdr(Some(look), ptr::null_mut()) };
    found != 0
}

/// Whether the program has replaced any of the operators, those too that are defined by others.
fn replaces_any() -> bool {
    exports::any(&|name, ours| {
        // SAFETY: the loader knows this handle.
        let bound = unsafe { find(libc::RTLD_DEFAULT, name) };
        bound.is_some_and(|bound| bound.addr() != ours)
    })
}

/// Looks at one object; not 0 if it calls operators of others.
unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _bytes: usize, _data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid description.
    let info = unsafe { &*info };
    c_int::from(Calling { info }.has_others())
}

/// An object that may call operators.
struct Calling<'a> {
    info: &'a libc::dl_phdr_info,
}

impl Calling<'_> {
    fn headers(&self) -> &[libc::Elf64_Phdr] {
        // SAFETY: the description has so many headers.
        unsafe { core::slice::from_raw_parts(self.info.dlpi_phdr, usize::from(self.info.dlpi_phnum)) }
    }

    fn base(&self) -> usize {
        self.info.dlpi_addr as usize
    }

    /// Whether an address lies in the object.
    fn holds(&self, address: usize) -> bool {
        let loaded = self.headers().iter().filter(|header| header.p_type == libc::PT_LOAD);
        loaded
            .map(|header| (self.base() + header.p_vaddr as usize, header.p_memsz as usize))
            .any(|(start, bytes)| address.wrapping_sub(start) < bytes)
    }

    /// An entry of the dynamic section; 0 if there is none. A function of its own: inlined at each call it would be most of the library's largest.
    #[inline(never)]
    fn dynamic(&self, tag: usize) -> usize {
        let Some(header) = self.headers().iter().find(|header| header.p_type == libc::PT_DYNAMIC) else { return 0 };
        let mut entry = (self.base() + header.p_vaddr as usize) as *const Dynamic;
        // SAFETY: an entry of the dynamic section, whose last one has the tag 0.
        while let Some(at) = unsafe { entry.as_ref() }.filter(|at| at.tag != 0) {
            if at.tag == tag {
                return at.value;
            }
            entry = entry.wrapping_add(1);
        }
        0
    }

    /// As [`Calling::dynamic`], of an address, to which the loader may have added the object's base.
    fn address(&self, tag: usize) -> usize {
        match self.dynamic(tag) {
            0 => 0,
            value if value < self.base() => self.base() + value,
            value => value,
        }
    }

    fn has_others(&self) -> bool {
        let (strings, symbols) = (self.address(DT_STRTAB), self.address(DT_SYMTAB));
        let tables = [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)];
        strings != 0
            && symbols != 0
            && tables.into_iter().any(|(table, bytes)| {
                let first = self.address(table) as *const Relocation;
                let n = if first.is_null() { 0 } else { self.dynamic(bytes) / size_of::<Relocation>() };
                (0..n).any(|index| {
                    // SAFETY: the table has that many relocations.
                    let relocation = unsafe { &*first.wrapping_add(index) };
                    self.is_other(relocation, symbols as *const Symbol, strings)
                })
            })
    }

    /// Whether a relocation is that of a slot with an operator that is neither here nor in the object.
    fn is_other(&self, relocation: &Relocation, symbols: *const Symbol, strings: usize) -> bool {
        let Some(symbol) = relocation.symbol() else { return false };
        // SAFETY: the relocation names a symbol of the object's table.
        let name = strings + unsafe { (*symbols.wrapping_add(symbol)).name } as usize;
        // SAFETY: the symbol's name is one of the object's strings, which end with a zero.
        let name = unsafe { CStr::from_ptr(name as *const c_char) };
        let bound = || {
            // SAFETY: the relocation has the offset of a slot of the object.
            unsafe { ((self.base() + relocation.offset) as *const usize).read() }
        };
        let is_operator = name.to_bytes().starts_with(b"_Zn") || name.to_bytes().starts_with(b"_Zd");
        is_operator
            && exports::any(&|ours, address| ours == name && bound() != 0 && bound() != address && !self.holds(bound()))
    }
}
