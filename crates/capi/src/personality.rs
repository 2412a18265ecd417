//! A symbol that the linker requires: on AArch64 always, and where a program takes all objects of the archive (`--whole-archive`).
#![allow(unsafe_code)]
//!
//! Atomic operations call the compiler's own library on AArch64 (which tests whether the processor has them as instructions), and the objects of
//! that library name the function that unwinding through Rust would need. Without the standard library no object defines it. Nothing here
//! unwinds, so it is never called.
//!
//! # Safety
//! The symbol is weak, because a program may link other Rust code with the real one; and hidden, so that the shared library does not export it.

#[cfg(target_arch = "aarch64")]
macro_rules! stop {
    () => {
        "brk #1"
    };
}

#[cfg(target_arch = "riscv64")]
macro_rules! stop {
    () => {
        "ebreak"
    };
}

#[cfg(target_arch = "x86_64")]
macro_rules! stop {
    () => {
        "ud2"
    };
}

core::arch::global_asm!(
    ".pushsection .text.rust_eh_personality,\"ax\",@progbits",
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality,@function",
    "rust_eh_personality:",
    stop!(),
    ".size rust_eh_personality, . - rust_eh_personality",
    ".popsection",
);
