//! The thread-local variables: the pointer to this thread's heap, and the stage of a thread without one. 12 bytes of static TLS.
#![allow(unsafe_code)]
//!
//! On x86-64, AArch64 and RISC-V they are declared and found in assembly, in the initial-exec model: two loads, no call, and right also under
//! preload (`thread_local!` in a shared object calls into the dynamic linker, which may allocate).
//!
//! Each platform has [`get`], which hot paths call and which is as short as it can be there, and `place`, for everything else. Accesses by way of
//! the place are volatile: a signal handler sees them in their order.
//!
//! # Safety
//! Each thread has its own copy of the two words that are declared here; their place is valid as long as the thread, and no other code accesses them.

use crate::thread::heap::HeapFront;
use freestone_os::System;

pub(super) use declared::get;

/// The front of a heap of the process's allocator, or a placeholder.
pub(crate) type Front = HeapFront<System>;

/// The heap of threads that have none.
pub(super) static PLACEHOLDER: Front = HeapFront::placeholder();

/// What each thread has.
#[repr(C)]
struct Variables {
    front: *const Front,
    stage: u32,
}

/// Where this thread's variables are. Never inlined, for it is called from many places that are seldom reached.
#[inline(never)]
fn place() -> *mut Variables {
    declared::place()
}

pub(super) fn set(front: *const Front) {
    set_at(place(), front);
}

/// As [`set`], without a call.
#[inline(always)]
pub(super) fn set_here(front: *const Front) {
    set_at(declared::place(), front);
}

#[inline(always)]
fn set_at(variables: *mut Variables, front: *const Front) {
    // SAFETY: the place is this thread's own, and valid as long as the thread.
    let field = unsafe { &raw mut (*variables).front };
    // SAFETY: as above.
    unsafe { field.write_volatile(front) }
}

pub(super) fn stage() -> u32 {
    let variables = place();
    // SAFETY: the place is this thread's own, and valid as long as the thread.
    let field = unsafe { &raw const (*variables).stage };
    // SAFETY: as above.
    unsafe { field.read_volatile() }
}

pub(super) fn set_stage(stage: u32) {
    let variables = place();
    // SAFETY: the place is this thread's own, and valid as long as the thread.
    let field = unsafe { &raw mut (*variables).stage };
    // SAFETY: as above.
    unsafe { field.write_volatile(stage) }
}

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    any(target_os = "linux", target_os = "android"),
    not(any(miri, loom))
))]
mod declared {
    use super::{Front, PLACEHOLDER, Variables};
    use core::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tdata.freestone_0_1_0_heap,\"awT\",@progbits",
        ".globl freestone_0_1_0_heap",
        ".hidden freestone_0_1_0_heap",
        ".type freestone_0_1_0_heap,@object",
        ".size freestone_0_1_0_heap,12",
        ".p2align 3",
        "freestone_0_1_0_heap:",
        ".quad {placeholder}",
        ".long 0",
        ".popsection",
        placeholder = sym PLACEHOLDER,
    );

    #[inline(always)]
    pub(in crate::thread::current) fn get() -> *const Front {
        let heap: *const Front;
        // SAFETY: reads this thread's own variable. `pure, readonly` lets the compiler keep the value between two writes.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                "mov {heap}, qword ptr [rip + freestone_0_1_0_heap@GOTTPOFF]",
                "mov {heap}, qword ptr fs:[{heap}]",
                heap = out(reg) heap,
                options(pure, readonly, nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                "adrp {heap}, :gottprel:freestone_0_1_0_heap",
                "ldr {heap}, [{heap}, :gottprel_lo12:freestone_0_1_0_heap]",
                "mrs {thread}, tpidr_el0",
                "ldr {heap}, [{thread}, {heap}]",
                heap = out(reg) heap,
                thread = out(reg) _,
                options(pure, readonly, nostack, preserves_flags),
            );
            #[cfg(target_arch = "riscv64")]
            asm!(
                "la.tls.ie {heap}, freestone_0_1_0_heap",
                "add {heap}, {heap}, tp",
                "ld {heap}, 0({heap})",
                heap = out(reg) heap,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        heap
    }

    #[inline(always)]
    pub(super) fn place() -> *mut Variables {
        let place: *mut Variables;
        // SAFETY: computes the address of this thread's own variable, which stays the same.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                "mov {place}, qword ptr fs:[0]",
                "add {place}, qword ptr [rip + freestone_0_1_0_heap@GOTTPOFF]",
                place = out(reg) place,
                options(pure, readonly, nostack),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                "adrp {place}, :gottprel:freestone_0_1_0_heap",
                "ldr {place}, [{place}, :gottprel_lo12:freestone_0_1_0_heap]",
                "mrs {thread}, tpidr_el0",
                "add {place}, {thread}, {place}",
                place = out(reg) place,
                thread = out(reg) _,
                options(pure, readonly, nostack, preserves_flags),
            );
            #[cfg(target_arch = "riscv64")]
            asm!(
                "la.tls.ie {place}, freestone_0_1_0_heap",
                "add {place}, {place}, tp",
                place = out(reg) place,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        place
    }
}

/// Thread-local storage as the loader of Windows has it: a block for each thread and object, found by the object's number. Linkers sort what is in it
/// by the names of sections, between `.tls$AAA` and `.tls$ZZZ`.
#[cfg(all(target_arch = "x86_64", target_os = "windows", not(miri), not(loom)))]
mod declared {
    use super::{Front, PLACEHOLDER, Variables};
    use core::arch::{asm, global_asm};

    global_asm!(
        ".section .tls$FREESTONE_0_1_0,\"dw\"",
        ".globl freestone_0_1_0_heap",
        ".p2align 3",
        "freestone_0_1_0_heap:",
        ".quad {placeholder}",
        ".quad 0",
        ".text",
        placeholder = sym PLACEHOLDER,
    );

    #[inline(always)]
    pub(in crate::thread::current) fn get() -> *const Front {
        let heap: *const Front;
        // SAFETY: reads this thread's own variable. `pure, readonly` lets the compiler keep the value between two writes.
        unsafe {
            asm!(
                "mov {heap:e}, dword ptr [rip + _tls_index]",
                "mov {blocks}, qword ptr gs:[0x58]",
                "mov {heap}, qword ptr [{blocks} + {heap}*8]",
                "mov {heap}, qword ptr [{heap} + freestone_0_1_0_heap@SECREL32]",
                heap = out(reg) heap,
                blocks = out(reg) _,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        heap
    }

    #[inline(always)]
    pub(super) fn place() -> *mut Variables {
        let place: *mut Variables;
        // SAFETY: computes the address of this thread's own variable, which stays the same.
        unsafe {
            asm!(
                "mov {place:e}, dword ptr [rip + _tls_index]",
                "mov {blocks}, qword ptr gs:[0x58]",
                "mov {place}, qword ptr [{blocks} + {place}*8]",
                "lea {place}, [{place} + freestone_0_1_0_heap@SECREL32]",
                place = out(reg) place,
                blocks = out(reg) _,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        place
    }
}

/// One thread.
#[cfg(all(target_family = "wasm", not(miri), not(loom)))]
mod declared {
    use super::{Front, PLACEHOLDER, Variables};

    static mut VARIABLES: Variables = Variables { front: &raw const PLACEHOLDER, stage: 0 };

    #[inline(always)]
    pub(in crate::thread::current) fn get() -> *const Front {
        // SAFETY: the only thread reads it.
        unsafe { VARIABLES.front }
    }

    #[inline(always)]
    pub(super) fn place() -> *mut Variables {
        &raw mut VARIABLES
    }
}

#[cfg(any(
    miri,
    loom,
    not(any(
        target_family = "wasm",
        all(target_arch = "x86_64", target_os = "windows"),
        all(
            any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
            any(target_os = "linux", target_os = "android")
        ),
    ))
))]
mod declared {
    extern crate std;
    use super::{Front, PLACEHOLDER, Variables};
    use std::cell::UnsafeCell;

    std::thread_local! {
        static VARIABLES: UnsafeCell<Variables> =
            const { UnsafeCell::new(Variables { front: &raw const PLACEHOLDER, stage: 0 }) };
    }

    #[inline(always)]
    pub(in crate::thread::current) fn get() -> *const Front {
        // SAFETY: the place is this thread's own.
        unsafe { (*place()).front }
    }

    #[inline(always)]
    pub(super) fn place() -> *mut Variables {
        VARIABLES.with(UnsafeCell::get)
    }
}
