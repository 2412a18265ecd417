//! The address range: the stretch of address space that all pages and their metadata lie in.
//!
//! The operating system proposes places (`Os::propose_range`). The wanted size is tried first, then half of it, and so on, until a range is
//! found. Smaller ranges are for processors with few address bits; limits of the process do not matter, because a range counts against
//! none before it is committed. `docs/decisions/0016-what-is-committed-when.md` has the reasons.

use crate::page::runs::MetadataArrays;
use crate::span::Layout;
use crate::span::layout::PAGES_UNIT;
use freestone_base::units::PAGE_BYTES;
use freestone_os::Os;

/// Smaller ranges are not worth trying: one unit of pages with its metadata, and the place for that.
const BYTES_LEAST: usize = PAGES_UNIT * PAGE_BYTES / 4 * 5;

/// More than the first metadata of an address range. Who gets no such memory anywhere does not find a place for a range.
const NEEDED_BYTES: usize = 4 * PAGE_BYTES;

/// Finds an address range, and commits its first metadata. If the kernel refuses all memory, that takes few system calls: each failing allocation of a
/// process without a range comes here.
pub(super) fn open<O: Os>(os: &O) -> Option<MetadataArrays> {
    let (mut bytes, mut is_asked) = (os.range_bytes_wanted(), false);
    while bytes >= BYTES_LEAST {
        let mut attempt = 0;
        while let Some(base) = os.propose_range(bytes, attempt) {
            if let Some(metadata) = lay_out(os, base, bytes) {
                return Some(metadata);
            }
            if !is_asked && os.refuses(NEEDED_BYTES) {
                return None;
            }
            is_asked = true;
            attempt += 1;
        }
        bytes /= 2;
    }
    None
}

/// Lays out a range, and commits its first metadata.
fn lay_out<O: Os>(os: &O, base: *mut u8, bytes: usize) -> Option<MetadataArrays> {
    let layout = if os.grows_at_its_end() {
        Layout::metadata_first(base, bytes)
    } else {
        Layout::new(base, bytes, os.os_page_bytes(), os.random())
    };
    MetadataArrays::begin(os, layout?)
}

#[cfg(test)]
mod tests;
