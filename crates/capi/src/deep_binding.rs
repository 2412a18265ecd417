//! `dlopen` without `RTLD_DEEPBIND`.
#![allow(unsafe_code)]
//!
//! A library that is loaded with that flag takes functions of its own dependencies first, and so the C library's `malloc` and `free`. It frees
//! blocks of the program's by them, and the program its blocks by ours: PHP loads its extensions so. The shared library has a `dlopen` therefore,
//! which takes the flag away and calls the next one:
//!
//! ```text
//!  program ─ call ─▶ dlopen here ─ call ─▶ next: where the C library's is, and the mode without the flag
//!                               └─ jump ─▶ dlopen of the C library ─ return ─▶ program
//! ```
//!
//! It jumps there, so the C library finds the program's return address: it searches in the folders and the namespace of the object that calls.
//! `docs/decisions/0077-libraries-that-prefer-their-own-functions.md` has the reasons.
//!
//! # Safety
//! The assembler calls [`next`] as the C ABI says, and jumps with the stack and the arguments as it got them. `dlsym` gets a C string.

use crate::operators::bindings;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;

/// Matches the name that `build.rs` has the linker give the function below in the shared library. In the archive it has none: a program that is
/// linked statically has the C library's `dlopen`.
#[unsafe(export_name = "dlope[n]")]
static EXPORTED: u8 = 0;

/// Defines the function by its instructions.
macro_rules! dlopen {
    ($($instruction:literal),* $(,)?) => {
        core::arch::global_asm!(
            ".pushsection .text.freestone_0_1_0_dlopen,\"ax\",@progbits",
            ".globl freestone_0_1_0_dlopen",
            ".type freestone_0_1_0_dlopen,@function",
            "freestone_0_1_0_dlopen:",
            ".cfi_startproc",
            $($instruction,)*
            ".cfi_endproc",
            ".size freestone_0_1_0_dlopen, . - freestone_0_1_0_dlopen",
            ".popsection",
            next = sym next,
        );
    };
}

#[cfg(target_arch = "x86_64")]
dlopen! {
    "push rdi",
    ".cfi_adjust_cfa_offset 8",
    "mov edi, esi",
    "call {next}",
    "pop rdi",
    ".cfi_adjust_cfa_offset -8",
    "mov esi, edx",
    "jmp rax",
}

#[cfg(target_arch = "aarch64")]
dlopen! {
    "stp x30, x0, [sp, #-16]!",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset x30, -16",
    "mov w0, w1",
    "bl {next}",
    "mov x16, x0",
    "ldp x30, x0, [sp], #16",
    ".cfi_def_cfa_offset 0",
    ".cfi_restore x30",
    "br x16",
}

#[cfg(target_arch = "riscv64")]
dlopen! {
    "addi sp, sp, -16",
    ".cfi_def_cfa_offset 16",
    "sd ra, 8(sp)",
    "sd a0, 0(sp)",
    ".cfi_offset ra, -8",
    "mv a0, a1",
    "call {next}",
    "mv t1, a0",
    "ld ra, 8(sp)",
    "ld a0, 0(sp)",
    "addi sp, sp, 16",
    ".cfi_def_cfa_offset 0",
    ".cfi_restore ra",
    "jr t1",
}

/// What a call of `dlopen` goes on with; in two registers.
#[repr(C)]
struct Next {
    function: *const c_void,
    mode: usize,
}

/// The `dlopen` behind this object's, and the mode to call it with. A program that has a `malloc` of its own gets its mode.
extern "C" fn next(mode: c_int) -> Next {
    let shares = !bindings::follows() && heap::Freestone.option("deepbind") == Some(0);
    let mode = if shares { mode & !libc::RTLD_DEEPBIND } else { mode };
    let function = bindings::find_behind(c"dlopen").map_or(absent as *const c_void, <*mut c_void>::cast_const);
    Next { function, mode: mode as usize }
}

/// The `dlopen` of a process in which nothing else has one.
extern "C" fn absent(_file: *const c_char, _mode: c_int) -> *mut c_void {
    ptr::null_mut()
}
