//! `libfreestone`: what the loader sees.
//!
//! | file | owns |
//! |---|---|
//! | [`malloc`] | the `malloc` family, with glibc's semantics |
//! | [`malloc_info`] | glibc's questions about the heap: `mallinfo2`, `malloc_stats`, `malloc_info`, `mallopt`, `malloc_trim` |
//! | [`heap`] | explicit heaps |
//! | [`control`] | options, statistics, purging; the line at the process's end |
//!
//! Layer: the top of the staircase. `include/freestone.h` declares and documents every symbol; a test compares the two.
#![no_std]

pub mod control;
pub mod heap;
pub mod malloc;
pub mod malloc_info;

/// Nothing here panics by design; if something does, the process ends with its message.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    freestone_os::fatal(format_args!("internal error: {info}"))
}
