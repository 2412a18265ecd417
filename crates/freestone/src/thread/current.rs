//! Which heap is this thread's.
#![allow(unsafe_code)]
//!
//! One thread-local pointer, 8 bytes of static TLS, never null: it starts at the address of a placeholder, so that no path tests whether it is
//! set. On x86-64 and AArch64 it is declared and read in assembly, in the initial-exec model: two loads, no call, and right also under
//! preload (`thread_local!` in a shared object calls into the dynamic linker, which may allocate).
//!
//! ```text
//!  before first use ─▶ starting ─▶ a thread heap ── the thread exits ─▶ gone
//! ```
//!
//! A thread is *starting* while the allocator starts in it, or while it gets its heap. It may hold locks then, so a signal handler that
//! allocates meanwhile gets null rather than wait for the thread that it interrupted.
//!
//! # Safety
//! The symbol is defined here and has the crate's version in its name, so that two versions can be in one process. The pointer is
//! only ever one of the three placeholders, the front of the calling thread's record (`thread::recorded`), or the calling thread's heap, from its
//! creation to its end; none of them is ever unmapped.

use crate::thread::heap::ThreadHeap;
use crate::thread::heap::own::Current;
use core::ptr;
use freestone_os::System;

/// A thread heap of the process's allocator.
pub(crate) type Heap = ThreadHeap<System>;

/// A thread's pointer before its first use.
static BEFORE_FIRST_USE: Heap = ThreadHeap::placeholder();

/// The pointer while the thread gets its heap.
static STARTING: Heap = ThreadHeap::placeholder();

/// The pointer once the thread's heap is gone.
static GONE: Heap = ThreadHeap::placeholder();

const _: () = assert!(env!("CARGO_PKG_VERSION").len() == 5, "rename the symbol of this file with the version");

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    any(target_os = "linux", target_os = "android"),
    not(any(miri, loom))
))]
mod slot {
    use super::{BEFORE_FIRST_USE, Heap};
    use core::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tdata.freestone_0_1_0_heap,\"awT\",@progbits",
        ".globl freestone_0_1_0_heap",
        ".hidden freestone_0_1_0_heap",
        ".type freestone_0_1_0_heap,@object",
        ".size freestone_0_1_0_heap,8",
        ".p2align 3",
        "freestone_0_1_0_heap:",
        ".quad {placeholder}",
        ".popsection",
        placeholder = sym BEFORE_FIRST_USE,
    );

    #[inline(always)]
    pub(super) fn get() -> *const Heap {
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

    pub(super) fn set(heap: *const Heap) {
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
}

/// Thread-local storage as the loader of Windows has it: a block for each thread and object, found by the object's number. Linkers sort what is in it
/// by the names of sections, between `.tls$AAA` and `.tls$ZZZ`.
#[cfg(all(target_arch = "x86_64", target_os = "windows", not(miri), not(loom)))]
mod slot {
    use super::{BEFORE_FIRST_USE, Heap};
    use core::arch::{asm, global_asm};

    global_asm!(
        ".section .tls$FREESTONE_0_1_0,\"dw\"",
        ".globl freestone_0_1_0_heap",
        ".p2align 3",
        "freestone_0_1_0_heap:",
        ".quad {placeholder}",
        ".text",
        placeholder = sym BEFORE_FIRST_USE,
    );

    #[inline(always)]
    pub(super) fn get() -> *const Heap {
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

    pub(super) fn set(heap: *const Heap) {
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
}

/// One thread.
#[cfg(all(target_family = "wasm", not(miri), not(loom)))]
mod slot {
    use super::{BEFORE_FIRST_USE, Heap};
    use freestone_base::sync::{AtomicPtr, Ordering};

    static HEAP: AtomicPtr<Heap> = AtomicPtr::new((&raw const BEFORE_FIRST_USE).cast_mut());

    #[inline(always)]
    pub(super) fn get() -> *const Heap {
        HEAP.load(Ordering::Relaxed)
    }

    pub(super) fn set(heap: *const Heap) {
        HEAP.store(heap.cast_mut(), Ordering::Relaxed);
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
mod slot {
    extern crate std;
    use super::{BEFORE_FIRST_USE, Heap};
    use std::cell::Cell;

    std::thread_local! {
        static HEAP: Cell<*const Heap> = const { Cell::new(&raw const BEFORE_FIRST_USE) };
    }

    #[inline(always)]
    pub(super) fn get() -> *const Heap {
        HEAP.get()
    }

    pub(super) fn set(heap: *const Heap) {
        HEAP.set(heap);
    }
}

/// This thread's heap, or a placeholder.
#[inline(always)]
#[must_use]
pub(crate) fn get() -> Current<'static, System> {
    // SAFETY: the pointer is a placeholder, or this thread's heap, which is alive; neither is ever unmapped (module header).
    let heap: &'static Heap = unsafe { &*slot::get() };
    // SAFETY: as above.
    unsafe { heap.as_current() }
}

/// The pointer itself: [`get`] with what lies behind the heap.
#[inline(always)]
#[must_use]
pub(crate) fn pointer() -> *const Heap {
    slot::get()
}

/// Whether this thread has made no call yet.
#[must_use]
pub(crate) fn is_new() -> bool {
    ptr::eq(slot::get(), &raw const BEFORE_FIRST_USE)
}

/// Whether this thread had a heap and has none any more.
#[must_use]
pub(crate) fn is_gone() -> bool {
    ptr::eq(slot::get(), &raw const GONE)
}

/// Whether this thread is about to get its heap.
#[must_use]
pub(crate) fn is_starting() -> bool {
    ptr::eq(slot::get(), &raw const STARTING)
}

/// Marks this thread as starting. Returns what to pass to [`set`] afterwards if the thread gets no heap.
pub(crate) fn begin_start() -> *const Heap {
    let before = slot::get();
    slot::set(&raw const STARTING);
    before
}

/// Makes `heap` this thread's.
///
/// # Safety
/// - `heap` is what [`begin_start`] returned to this thread, or a heap that was created for this thread and is alive, until the next call or
///   [`leave`].
pub(crate) unsafe fn set(heap: *const Heap) {
    slot::set(heap);
}

/// Leaves this thread without a heap, for good.
pub(crate) fn leave() {
    slot::set(&raw const GONE);
}
