//! The slots through which this object calls functions of others.
#![allow(unsafe_code)]
//!
//! A call of a function that another object may define goes through a stub, and the stub jumps to the address in a slot. The dynamic section says
//! where the relocations of the slots are, and each relocation where its slot is.
//!
//! # Safety
//! The object's first bytes are its ELF header, and its dynamic section is as the ELF specification has it. The loader may have added the
//! object's base to the address of the relocations, as glibc's does, or not, as musl's.

/// An ELF header.
#[repr(C)]
pub(super) struct Header {
    identification: [u8; 16],
    kind: u16,
}

/// An entry of a dynamic section.
#[repr(C)]
pub(super) struct Dynamic {
    pub(super) tag: usize,
    pub(super) value: usize,
}

/// A relocation with an addend.
#[repr(C)]
pub(super) struct Relocation {
    pub(super) offset: usize,
    info: u64,
    _addend: i64,
}

impl Relocation {
    /// The number of the symbol whose address a slot gets; `None` of another relocation.
    pub(super) fn symbol(&self) -> Option<usize> {
        SLOT_KINDS.contains(&(self.info as u32)).then_some((self.info >> 32) as usize)
    }
}

/// The relocations of slots: for data, and for calls.
const SLOT_KINDS: [u32; 2] = if cfg!(target_arch = "x86_64") {
    [6, 7]
} else if cfg!(target_arch = "riscv64") {
    [2, 5]
} else {
    [1025, 1026]
};

/// An object that may be loaded anywhere: its addresses are relative to its header.
const ET_DYN: u16 = 3;
const DT_NULL: usize = 0;
pub(super) const DT_PLTRELSZ: usize = 2;
pub(super) const DT_JMPREL: usize = 23;

/// Whether a slot of the object contains `address`. The slots of an object that cannot be loaded anywhere are not looked at: calls within a
/// program need none.
///
/// # Safety
/// - `header` and `dynamic` are null, or those of an object that the loader has relocated.
pub(super) unsafe fn contain(header: *const Header, mut dynamic: *const Dynamic, address: usize) -> bool {
    // SAFETY: null, or the object's header (this function's contract).
    if unsafe { header.as_ref() }.is_none_or(|header| header.kind != ET_DYN) {
        return false;
    }
    let base = header.addr();
    let (mut table, mut n_slots) = (0, 0);
    // SAFETY: null, or an entry of the dynamic section, whose last one is `DT_NULL`.
    while let Some(entry) = unsafe { dynamic.as_ref() }.filter(|entry| entry.tag != DT_NULL) {
        match entry.tag {
            DT_JMPREL => table = entry.value,
            DT_PLTRELSZ => n_slots = entry.value / size_of::<Relocation>(),
            _ => {}
        }
        dynamic = dynamic.wrapping_add(1);
    }
    let first = if table < base { base + table } else { table } as *const Relocation;
    (0..n_slots).any(|index| {
        // SAFETY: the table has that many relocations.
        let offset = unsafe { (*first.wrapping_add(index)).offset };
        // SAFETY: each has the offset of a slot.
        let slot = unsafe { ((base + offset) as *const usize).read() };
        slot == address
    })
}
