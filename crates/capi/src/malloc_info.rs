//! glibc's functions that describe the heap, answered from the library's statistics.
#![allow(unsafe_code)]
//!
//! # Safety
//! `malloc_info` writes to the stream that its caller passes.

use core::ffi::{c_char, c_int};
use core::fmt::Write;
use freestone_base::text::FixedText;
use heap::{Freestone, Stats};

/// `struct mallinfo2` of `<malloc.h>`. Bytes, but for the counts of free chunks, which stay 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Mallinfo2 {
    arena: usize,
    ordblks: usize,
    smblks: usize,
    hblks: usize,
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    uordblks: usize,
    fordblks: usize,
    keepcost: usize,
}

/// `struct mallinfo` of `<malloc.h>`: the same in `int`s, wrapped as glibc wraps them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Mallinfo {
    fields: [c_int; 10],
}

/// `arena` committed, `uordblks` live, `fordblks` everything else, `keepcost` what `malloc_trim` could give back.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> Mallinfo2 {
    let stats = Freestone.stats();
    Mallinfo2 {
        arena: stats.committed as usize,
        uordblks: stats.live as usize,
        fordblks: (stats.committed - stats.live) as usize,
        keepcost: (stats.cached + stats.dirty) as usize,
        ..Mallinfo2::default()
    }
}

/// As [`mallinfo2`], in `int`s.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> Mallinfo {
    let info = mallinfo2();
    Mallinfo {
        fields: [
            info.arena as c_int,
            0,
            0,
            0,
            0,
            0,
            0,
            info.uordblks as c_int,
            info.fordblks as c_int,
            info.keepcost as c_int,
        ],
    }
}

/// Gives all free memory back to the operating system now and ignores `pad`. 1 if there was any, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_pad: usize) -> c_int {
    c_int::from(Freestone.purge() > 0)
}

/// Accepts and ignores every parameter: glibc's have no counterpart here. Returns 1, as glibc does for parameters it knows.
#[unsafe(no_mangle)]
pub extern "C" fn mallopt(_parameter: c_int, _value: c_int) -> c_int {
    1
}

/// Room for the XML text: about 500 bytes.
const TEXT_BYTES: usize = 1024;

/// Writes the statistics to standard error.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_stats() {
    let Stats { live, cached, fragmented, dirty, metadata, committed, .. } = Freestone.stats();
    freestone_os::report(format_args!(
        "committed {committed} = live {live} + cached {cached} + fragmented {fragmented} + dirty {dirty} + metadata {metadata} bytes"
    ));
}

/// Writes the statistics to `stream` as XML, in the shape of glibc's. `options` must be 0, else `EINVAL` is returned.
///
/// # Safety
/// - `stream` is an open C stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int {
    if options != 0 {
        return libc::EINVAL;
    }
    let stats = Freestone.stats();
    let mut text = FixedText::<TEXT_BYTES>::new();
    // Writing into `FixedText` cannot fail.
    let _ = write!(
        text,
        concat!(
            "<malloc version=\"1\">\n<total type=\"live\" size=\"{}\"/>\n<total type=\"cached\" size=\"{}\"/>\n",
            "<total type=\"fragmented\" size=\"{}\"/>\n<total type=\"dirty\" size=\"{}\"/>\n<total type=\"metadata\" size=\"{}\"/>\n",
            "<system type=\"current\" size=\"{}\"/>\n<system type=\"max\" size=\"{}\"/>\n</malloc>\n"
        ),
        stats.live, stats.cached, stats.fragmented, stats.dirty, stats.metadata, stats.committed, stats.peak_committed
    );
    let bytes = text.as_bytes();
    // SAFETY: the stream is open (this function's contract); `bytes` is a slice of `bytes.len()` bytes.
    let written = unsafe { libc::fwrite(bytes.as_ptr().cast::<c_char>().cast(), 1, bytes.len(), stream) };
    if written == bytes.len() { 0 } else { -1 }
}
