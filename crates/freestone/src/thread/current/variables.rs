//! The thread-local variables: the pointer to this thread's heap, and the stage of a thread without one. 16 bytes of static TLS.
#![allow(unsafe_code)]
//!
//! On x86-64 and AArch64 they are declared and accessed in assembly, in the initial-exec model: two loads, no call, and right also under
//! preload (`thread_local!` in a shared object calls into the dynamic linker, which may allocate).
//!
//! # Safety
//! The assembly accesses the two words of the symbol that it declares, which each thread has its own copy of, in no other way.

use crate::thread::heap::ThreadHeap;
use freestone_os::System;

pub(super) use declared::{get, set, set_stage, stage};

/// A thread heap of the process's allocator.
pub(crate) type Heap = ThreadHeap<System>;

/// The heap of threads that have none.
pub(super) static PLACEHOLDER: Heap = ThreadHeap::placeholder();

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    any(target_os = "linux", target_os = "android"),
    not(any(miri, loom))
))]
mod declared {
    use super::{Heap, PLACEHOLDER};
    use core::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tdata.freestone_0_1_0_heap,\"awT\",@progbits",
        ".globl freestone_0_1_0_heap",
        ".hidden freestone_0_1_0_heap",
        ".type freestone_0_1_0_heap,@object",
        ".size freestone_0_1_0_heap,16",
        ".p2align 3",
        "freestone_0_1_0_heap:",
        ".quad {placeholder}",
        ".quad 0",
        ".popsection",
        placeholder = sym PLACEHOLDER,
    );

    #[inline(always)]
    pub(in crate::thread::current) fn get() -> *const Heap {
        let heap: *const Heap;
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
        }
        heap
    }

    pub(in crate::thread::current) fn set(heap: *const Heap) {
        // SAFETY: writes this thread's own variable.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                "mov {offset}, qword ptr [rip + freestone_0_1_0_heap@GOTTPOFF]",
                "mov qword ptr fs:[{offset}], {heap}",
                offset = out(reg) _,
                heap = in(reg) heap,
                options(nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                "adrp {offset}, :gottprel:freestone_0_1_0_heap",
                "ldr {offset}, [{offset}, :gottprel_lo12:freestone_0_1_0_heap]",
                "mrs {thread}, tpidr_el0",
                "str {heap}, [{thread}, {offset}]",
                offset = out(reg) _,
                thread = out(reg) _,
                heap = in(reg) heap,
                options(nostack, preserves_flags),
            );
        }
    }

    pub(in crate::thread::current) fn stage() -> usize {
        let stage: usize;
        // SAFETY: reads this thread's own variable.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                "mov {stage}, qword ptr [rip + freestone_0_1_0_heap@GOTTPOFF]",
                "mov {stage}, qword ptr fs:[{stage} + 8]",
                stage = out(reg) stage,
                options(readonly, nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                "adrp {stage}, :gottprel:freestone_0_1_0_heap",
                "ldr {stage}, [{stage}, :gottprel_lo12:freestone_0_1_0_heap]",
                "mrs {thread}, tpidr_el0",
                "add {thread}, {thread}, {stage}",
                "ldr {stage}, [{thread}, #8]",
                stage = out(reg) stage,
                thread = out(reg) _,
                options(readonly, nostack, preserves_flags),
            );
        }
        stage
    }

    pub(in crate::thread::current) fn set_stage(stage: usize) {
        // SAFETY: writes this thread's own variable.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                "mov {offset}, qword ptr [rip + freestone_0_1_0_heap@GOTTPOFF]",
                "mov qword ptr fs:[{offset} + 8], {stage}",
                offset = out(reg) _,
                stage = in(reg) stage,
                options(nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                "adrp {offset}, :gottprel:freestone_0_1_0_heap",
                "ldr {offset}, [{offset}, :gottprel_lo12:freestone_0_1_0_heap]",
                "mrs {thread}, tpidr_el0",
                "add {thread}, {thread}, {offset}",
                "str {stage}, [{thread}, #8]",
                offset = out(reg) _,
                thread = out(reg) _,
                stage = in(reg) stage,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Thread-local storage as the loader of Windows has it: a block for each thread and object, found by the object's number. Linkers sort what is in it
/// by the names of sections, between `.tls$AAA` and `.tls$ZZZ`.
#[cfg(all(target_arch = "x86_64", target_os = "windows", not(miri), not(loom)))]
mod declared {
    use super::{Heap, PLACEHOLDER};
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
    pub(in crate::thread::current) fn get() -> *const Heap {
        let heap: *const Heap;
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

    pub(in crate::thread::current) fn set(heap: *const Heap) {
        // SAFETY: writes this thread's own variable.
        unsafe {
            asm!(
                "mov {block:e}, dword ptr [rip + _tls_index]",
                "mov {blocks}, qword ptr gs:[0x58]",
                "mov {block}, qword ptr [{blocks} + {block}*8]",
                "mov qword ptr [{block} + freestone_0_1_0_heap@SECREL32], {heap}",
                block = out(reg) _,
                blocks = out(reg) _,
                heap = in(reg) heap,
                options(nostack, preserves_flags),
            );
        }
    }

    pub(in crate::thread::current) fn stage() -> usize {
        let stage: usize;
        // SAFETY: reads this thread's own variable.
        unsafe {
            asm!(
                "mov {stage:e}, dword ptr [rip + _tls_index]",
                "mov {blocks}, qword ptr gs:[0x58]",
                "mov {stage}, qword ptr [{blocks} + {stage}*8]",
                "mov {stage}, qword ptr [{stage} + freestone_0_1_0_heap@SECREL32 + 8]",
                stage = out(reg) stage,
                blocks = out(reg) _,
                options(readonly, nostack, preserves_flags),
            );
        }
        stage
    }

    pub(in crate::thread::current) fn set_stage(stage: usize) {
        // SAFETY: writes this thread's own variable.
        unsafe {
            asm!(
                "mov {block:e}, dword ptr [rip + _tls_index]",
                "mov {blocks}, qword ptr gs:[0x58]",
                "mov {block}, qword ptr [{blocks} + {block}*8]",
                "mov qword ptr [{block} + freestone_0_1_0_heap@SECREL32 + 8], {stage}",
                block = out(reg) _,
                blocks = out(reg) _,
                stage = in(reg) stage,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// One thread.
#[cfg(all(target_family = "wasm", not(miri), not(loom)))]
mod declared {
    use super::{Heap, PLACEHOLDER};
    use freestone_base::sync::{AtomicPtr, AtomicUsize, Ordering};

    static HEAP: AtomicPtr<Heap> = AtomicPtr::new((&raw const PLACEHOLDER).cast_mut());

    #[inline(always)]
    pub(in crate::thread::current) fn get() -> *const Heap {
        HEAP.load(Ordering::Relaxed)
    }

    pub(in crate::thread::current) fn set(heap: *const Heap) {
        HEAP.store(heap.cast_mut(), Ordering::Relaxed);
    }

    static STAGE: AtomicUsize = AtomicUsize::new(0);

    pub(in crate::thread::current) fn stage() -> usize {
        STAGE.load(Ordering::Relaxed)
    }

    pub(in crate::thread::current) fn set_stage(stage: usize) {
        STAGE.store(stage, Ordering::Relaxed);
    }
}

#[cfg(any(
    miri,
    loom,
    not(any(
        target_family = "wasm",
        all(target_arch = "x86_64", target_os = "windows"),
        all(any(target_arch = "x86_64", target_arch = "aarch64"), any(target_os = "linux", target_os = "android")),
    ))
))]
mod declared {
    extern crate std;
    use super::{Heap, PLACEHOLDER};
    use std::cell::Cell;

    std::thread_local! {
        static HEAP: Cell<*const Heap> = const { Cell::new(&raw const PLACEHOLDER) };
        static STAGE: Cell<usize> = const { Cell::new(0) };
    }

    #[inline(always)]
    pub(in crate::thread::current) fn get() -> *const Heap {
        HEAP.get()
    }

    pub(in crate::thread::current) fn set(heap: *const Heap) {
        HEAP.set(heap);
    }

    pub(in crate::thread::current) fn stage() -> usize {
        STAGE.get()
    }

    pub(in crate::thread::current) fn set_stage(stage: usize) {
        STAGE.set(stage);
    }
}
