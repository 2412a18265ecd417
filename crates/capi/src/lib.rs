//! `libfreestone`: the C interface, as a shared library and an archive.
//!
//! | file | owns |
//! |---|---|
//! | [`malloc`] | the `malloc` family, with glibc's semantics |
//! | `operators` | the C++ operators `new` and `delete` |
//! | [`malloc_info`] | glibc's functions that describe the heap: `mallinfo2`, `malloc_stats`, `malloc_info`, `mallopt`, `malloc_trim` |
//! | [`heap`] | explicit heaps |
//! | [`pool`], [`magazine`] | pools in memory of the process, and magazines; the rest of pools, and TLSF, is in the crate `freestone-bounded` |
//! | [`access`] | what the library of checked memory functions asks |
//! | [`stats`] | statistics, as numbers and as text |
//! | [`profile`] | the heap profile |
//! | [`pieces`] | text on its way to a C program |
//! | [`control`] | options, purging; the line of statistics at exit |
//! | `deep_binding` | `dlopen`, so that libraries share blocks with the program |
//! | `failure`, [`error_text`] | why a function of the process or an explicit heap was refused; the message of any error |
//! | `personality` | a symbol that the linker requires |
//!
//! Layer: the highest. `include/freestone.h` declares and documents every symbol but the operators and `dlopen`; `tests/elf.rs` compares the two.
#![cfg_attr(panic = "abort", no_std)]

pub mod access;
pub mod control;
#[cfg(target_env = "gnu")]
mod deep_binding;
pub mod error_text;
mod failure;
pub mod heap;
pub mod magazine;
pub mod malloc;
pub mod malloc_info;
mod operators;
#[cfg(all(panic = "abort", any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86_64")))]
mod personality;
pub mod pieces;
pub mod pool;
pub mod profile;
pub mod stats;

/// The library allocates nothing for itself. Tests built together with it enable the fake kernel, which does.
#[global_allocator]
static ALLOCATOR: ::heap::Freestone = ::heap::Freestone;

/// Nothing here panics by design; if something does, the process ends with its message. (Built to unwind, as tests are, the standard
/// library has a handler.)
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    match info.location() {
        Some(place) => freestone_os::fatal(format_args!("internal error in {}, line {}", place.file(), place.line())),
        None => freestone_os::fatal(format_args!("internal error")),
    }
}
