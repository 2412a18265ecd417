//! The C functions that need neither an operating system nor a C library: TLSF heaps, and pools in memory that the caller provides.
//!
//! ```text
//!  libfreestone.so, .a      capi ──▶ this crate, with the features `tlsf` and `pool`
//!  libfreestone_tlsf.a      this crate, with `tlsf` and `archive`
//!  libfreestone_pool.a      this crate, with `pool` and `archive`
//! ```
//!
//! `cargo xtask archives` builds the two libraries. Their headers, `freestone_tlsf.h` and `freestone_pool.h` in the folder of `capi`, document every
//! function.
//!
//! | file | owns |
//! |---|---|
//! | [`error`], [`last_error`] | why a call was refused; where an object keeps that |
//! | [`message`] | the text of an error |
//! | [`sized`] | structures whose first member is their size |
//! | `memory` | what a compiler calls in a program without a C library |
//! | [`tlsf`] | bounded-time heaps over memory that the caller provides |
//! | [`pool`] | pools of equal blocks |
//!
//! No function sets `errno`, allocates from the process, or panics.
#![no_std]

pub mod error;
pub mod last_error;
#[cfg(all(feature = "archive", panic = "abort", not(target_os = "none")))]
mod memory;
pub mod message;
#[cfg(feature = "pool")]
pub mod pool;
pub mod sized;
#[cfg(feature = "tlsf")]
pub mod tlsf;

/// A library needs a handler to link; nothing panics, so it stays out of every program whose linker drops unused sections.
#[cfg(all(feature = "archive", panic = "abort", not(test)))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
