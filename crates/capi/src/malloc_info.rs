//! glibc's functions that describe the heap, answered from the library's statistics.
#![allow(unsafe_code)]
//!
//! # Safety
//! `malloc_info` writes to the stream that its caller passes.

use crate::pieces;
use core::ffi::{c_char, c_int, c_void};
use core::fmt;
use freestone_base::units::PAGE_BYTES;
use freestone_os::{Errno, process};
use heap::{ClassStats, Details, Freestone, Stats};

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

/// Writes the statistics to standard error: a line of sums, a line of counts, and one for each kind of block that was ever allocated.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_stats() {
    let is_written = Freestone.with_details(|details| {
        let Stats { live, cached, fragmented, dirty, metadata, committed, .. } = details.stats;
        freestone_os::report(format_args!(
            "committed {committed} = live {live} + cached {cached} + fragmented {fragmented} + dirty {dirty} + metadata {metadata} bytes"
        ));
        let Stats { peak_live, peak_committed, purged, n_allocations, n_frees, n_threads, .. } = details.stats;
        freestone_os::report(format_args!(
            "peak live {peak_live}, peak committed {peak_committed}, purged {purged} bytes; {n_allocations} allocations, {n_frees} frees, {n_threads} heaps"
        ));
        for row in details.classes.iter().filter(|row| row.n_allocations > 0) {
            match row.block_bytes {
                0 => report_row(format_args!("large blocks"), row),
                bytes => report_row(format_args!("blocks of {bytes}"), row),
            }
        }
    });
    if is_written.is_none() {
        freestone_os::report(format_args!("no memory for statistics"));
    }
}

fn report_row(what: fmt::Arguments<'_>, row: &ClassStats) {
    let ClassStats { live, cached, n_allocations, n_frees, .. } = *row;
    let n_live = row.n_live();
    freestone_os::report(format_args!(
        "{what}: {n_live} live ({live} bytes), {cached} bytes cached, {n_allocations} allocations, {n_frees} frees"
    ));
}

/// The statistics as XML with glibc's elements: one `heap` for all heaps, whose `sizes` are the free blocks that threads cache.
struct Xml<'a>(&'a Details<'a>);

impl Xml<'_> {
    /// What stands once in the heap and once in the sum. `fast`: cached small blocks; `rest`: all other free memory, counted in pages.
    fn write_sums(&self, f: &mut fmt::Formatter<'_>, large: Option<&ClassStats>) -> fmt::Result {
        let Details { stats, classes, .. } = self.0;
        let small = || classes.iter().filter(|row| row.block_bytes != 0);
        let fast: u64 = small().map(|row| row.cached).sum();
        let n_fast: u64 = small().map(|row| row.cached / row.block_bytes).sum();
        let rest = stats.fragmented + stats.dirty + stats.cached - fast;
        writeln!(f, r#"<total type="fast" count="{n_fast}" size="{fast}"/>"#)?;
        writeln!(f, r#"<total type="rest" count="{}" size="{rest}"/>"#, rest.div_ceil(PAGE_BYTES as u64))?;
        if let Some(large) = large {
            writeln!(f, r#"<total type="mmap" count="{}" size="{}"/>"#, large.n_live(), large.live)?;
        }
        writeln!(f, r#"<system type="current" size="{}"/>"#, stats.committed)?;
        writeln!(f, r#"<system type="max" size="{}"/>"#, stats.peak_committed.max(stats.committed))?;
        writeln!(f, r#"<aspace type="total" size="{}"/>"#, stats.committed)?;
        writeln!(f, r#"<aspace type="mprotect" size="{}"/>"#, stats.committed)
    }
}

impl fmt::Display for Xml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = self.0.classes;
        f.write_str("<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n")?;
        let mut from = 1;
        for row in classes.iter().filter(|row| row.block_bytes != 0) {
            let (to, total) = (row.block_bytes, row.cached);
            if total > 0 {
                writeln!(f, r#"  <size from="{from}" to="{to}" total="{total}" count="{}"/>"#, total / to)?;
            }
            from = to + 1;
        }
        f.write_str("</sizes>\n")?;
        self.write_sums(f, None)?;
        f.write_str("</heap>\n")?;
        self.write_sums(f, classes.last())?;
        f.write_str("</malloc>\n")
    }
}

/// Writes the statistics to `stream` as XML, in the shape of glibc's. `options` must be 0, else `EINVAL` is returned.
///
/// # Safety
/// - `stream` is an open C stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int {
    unsafe extern "C" fn to_stream(text: *const c_char, bytes: usize, stream: *mut c_void) -> c_int {
        // SAFETY: the stream is the open one that `malloc_info` was called with; the piece has as many bytes.
        let n_written = unsafe { libc::fwrite(text.cast(), 1, bytes, stream.cast()) };
        if n_written == bytes { 0 } else { -1 }
    }
    if options != 0 {
        return libc::EINVAL;
    }
    let write = |details: &Details<'_>| {
        // SAFETY: the stream is open (this function's contract) as long as this call runs.
        unsafe { pieces::write_all(to_stream, stream.cast(), format_args!("{}", Xml(details))) }
    };
    Freestone.with_details(write).unwrap_or_else(|| {
        process::set_errno(Errno::NOMEM);
        -1
    })
}
