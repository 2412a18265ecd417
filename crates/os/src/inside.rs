//! Whether the calling thread is in the middle of work that a fork must not copy half done: it takes or holds a lock, or memory is being purged for it.
#![allow(unsafe_code)]
//!
//! A signal handler may find that of the thread that it has interrupted. A fork elsewhere takes every lock first, so that no other thread is inside; one in
//! such a handler would wait for its own thread.
//!
//! One thread-local counter of 4 bytes, in the initial-exec model, on 64-bit Linux and Android. Elsewhere nothing is counted.
//! Cost: two instructions to enter and two to leave.
//!
//! # Safety
//! Each thread has its own copy of the word that is declared here, and no other code accesses it. An interrupted increment is no problem: a handler leaves
//! the counter as it found it.

use core::marker::PhantomData;

/// While one exists, the thread that made it is inside.
#[must_use]
#[derive(Debug)]
pub struct Inside {
    not_send: PhantomData<*const u8>,
}

impl Inside {
    /// The calling thread is inside until the value is dropped.
    ///
    /// ```
    /// # if cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))) {
    /// use freestone_os::Inside;
    ///
    /// let inside = Inside::begin();
    /// assert!(Inside::is_any());
    /// drop(inside);
    /// assert!(!Inside::is_any());
    /// # }
    /// ```
    pub fn begin() -> Self {
        enter();
        Self { not_send: PhantomData }
    }

    /// Whether the calling thread is inside.
    #[must_use]
    pub fn is_any() -> bool {
        depth() != 0
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        leave();
    }
}

pub(crate) use counter::{depth, enter, leave};

const _: () = assert!(env!("CARGO_PKG_VERSION").len() == 5, "rename the symbol of this file with the version");

#[cfg(all(
    door = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(any(miri, loom, shuttle))
))]
mod counter {
    use core::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss.freestone_0_1_0_inside,\"awT\",@nobits",
        ".globl freestone_0_1_0_inside",
        ".hidden freestone_0_1_0_inside",
        ".type freestone_0_1_0_inside,@object",
        ".size freestone_0_1_0_inside,4",
        ".p2align 2",
        "freestone_0_1_0_inside:",
        ".zero 4",
        ".popsection",
    );

    /// Changes this thread's variable by one, with the instruction that each platform has for that.
    macro_rules! change {
        (x86_64: $x86_64:literal, aarch64: $aarch64:literal, riscv64: $riscv64:literal) => {
            // SAFETY: changes this thread's own variable.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                asm!(
                    "mov {at}, qword ptr [rip + freestone_0_1_0_inside@GOTTPOFF]",
                    concat!($x86_64, " dword ptr fs:[{at}]"),
                    at = out(reg) _,
                    options(nostack),
                );
                #[cfg(target_arch = "aarch64")]
                asm!(
                    "adrp {at}, :gottprel:freestone_0_1_0_inside",
                    "ldr {at}, [{at}, :gottprel_lo12:freestone_0_1_0_inside]",
                    "mrs {thread}, tpidr_el0",
                    "ldr {depth:w}, [{thread}, {at}]",
                    concat!($aarch64, " {depth:w}, {depth:w}, #1"),
                    "str {depth:w}, [{thread}, {at}]",
                    at = out(reg) _,
                    thread = out(reg) _,
                    depth = out(reg) _,
                    options(nostack, preserves_flags),
                );
                #[cfg(target_arch = "riscv64")]
                asm!(
                    "la.tls.ie {at}, freestone_0_1_0_inside",
                    "add {at}, {at}, tp",
                    "lw {depth}, 0({at})",
                    concat!("addiw {depth}, {depth}, ", $riscv64),
                    "sw {depth}, 0({at})",
                    at = out(reg) _,
                    depth = out(reg) _,
                    options(nostack, preserves_flags),
                );
            }
        };
    }

    #[inline(always)]
    pub(crate) fn enter() {
        change!(x86_64: "inc", aarch64: "add", riscv64: "1");
    }

    #[inline(always)]
    pub(crate) fn leave() {
        change!(x86_64: "dec", aarch64: "sub", riscv64: "-1");
    }

    pub(crate) fn depth() -> u32 {
        let depth: u32;
        // SAFETY: reads this thread's own variable.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                "mov {depth:r}, qword ptr [rip + freestone_0_1_0_inside@GOTTPOFF]",
                "mov {depth:e}, dword ptr fs:[{depth:r}]",
                depth = out(reg) depth,
                options(readonly, nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                "adrp {depth:x}, :gottprel:freestone_0_1_0_inside",
                "ldr {depth:x}, [{depth:x}, :gottprel_lo12:freestone_0_1_0_inside]",
                "mrs {thread}, tpidr_el0",
                "ldr {depth:w}, [{thread}, {depth:x}]",
                depth = out(reg) depth,
                thread = out(reg) _,
                options(readonly, nostack, preserves_flags),
            );
            #[cfg(target_arch = "riscv64")]
            asm!(
                "la.tls.ie {depth}, freestone_0_1_0_inside",
                "add {depth}, {depth}, tp",
                "lw {depth}, 0({depth})",
                depth = out(reg) depth,
                options(readonly, nostack, preserves_flags),
            );
        }
        depth
    }
}

/// Nothing is counted.
#[cfg(not(all(
    door = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(any(miri, loom, shuttle))
)))]
mod counter {
    #[inline(always)]
    pub(crate) fn enter() {}

    #[inline(always)]
    pub(crate) fn leave() {}

    pub(crate) fn depth() -> u32 {
        0
    }
}

#[cfg(test)]
mod tests;
