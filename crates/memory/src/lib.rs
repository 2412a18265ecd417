//! `libfreestone_memory`: `memcpy` and its kin, which check that they stay inside a block, for programs with Freestone at the level `full`.
//!
//! ```text
//!  program ─▶ memcpy ─▶ bounds: does the destination, or the source, lie where blocks are? ─no─▶ routines: the C library's memmove
//!                                   │ yes                                                             ▲
//!                                   └─▶ libfreestone: does the access stay in its block? ──yes────────┘
//!                                                                                        └no─▶ a report, and an abort
//! ```
//!
//! It is preloaded beside `libfreestone.so`. Without that library in the process, or at a lower level, the functions only do their work.
//! `docs/decisions/0026-checked-memory-functions.md` says why this is a library of its own.
//!
//! The functions may be called before this library is relocated, by a resolver of an indirect function; so nothing on their way needs a relocation
//! that may not have happened: tables are tested for null first.
//!
//! | file | owns |
//! |---|---|
//! | `blocks` | `memcpy`, `memmove`, `mempcpy`, `memccpy`, `memset`, `bcopy`, `bzero`, `explicit_bzero` |
//! | `strings` | `strcpy`, `stpcpy`, `strncpy`, `stpncpy`, `strcat`, `strncat` |
//! | `fortified` | what compilers call in place of these where they know how much room there is |
//! | `bounds` | whether an access is worth a check, and the check |
//! | `allocator` | the functions of `libfreestone` that the process may have |
//! | `routines` | copying, filling and searching: the C library's functions |
#![cfg_attr(all(panic = "abort", not(test)), no_std)]
// The compiler must not make a call of `memcpy` out of a loop, or of anything else, here.
#![no_builtins]

mod allocator;
mod blocks;
mod bounds;
#[cfg(all(target_env = "gnu", not(test)))]
mod fortified;
mod routines;
mod strings;

/// Nothing here panics by design; if something does, the process ends with its message. (Built to unwind, as tests are, the standard
/// library has a handler.)
#[cfg(all(panic = "abort", not(test)))]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    freestone_os::fatal(format_args!("internal error: {info}"))
}
