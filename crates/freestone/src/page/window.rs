//! Finding the window, and committing records and bitmaps as the pages they describe come into use.
#![allow(unsafe_code)]
//!
//! A window is tried out where the kernel proposes one: half as large, and again, as long as its page map cannot be mapped.
//!
//! # Safety
//! Ranges committed here are the metadata of the window that was just laid out, which nobody else knows of yet, or the next
//! chunk of it, under the page heap's lock.

use crate::span::layout::{BITMAP_BYTES, CHUNK_PAGES};
use crate::span::{Kind, Layout, Span};
use freestone_base::align;
use freestone_os::{Errno, Os};

/// Windows smaller than this are not worth trying: 64 MiB of pages with their metadata.
const WINDOW_BYTES_LEAST: usize = 65 << 20;

/// Finds a window whose page map and first chunk of metadata can be committed, and commits them.
pub fn open<O: Os>(os: &O) -> Option<Layout> {
    let mut bytes = os.window_bytes_wanted();
    while bytes >= WINDOW_BYTES_LEAST {
        let mut attempt = 0;
        while let Some(base) = os.propose_window(bytes, attempt) {
            if let Some(layout) = Layout::new(base, bytes)
                && try_out(os, &layout).is_ok()
            {
                return Some(layout);
            }
            attempt += 1;
        }
        bytes /= 2;
    }
    None
}

fn try_out<O: Os>(os: &O, layout: &Layout) -> Result<(), Errno> {
    let map_bytes = align::up(layout.map_bytes(), os.os_page_bytes());
    // SAFETY: see the module header.
    unsafe {
        os.commit(layout.map.start(), map_bytes, true)?;
        if let Err(errno) = commit_chunk(os, layout, 0) {
            let _ = os.release(layout.map.start(), map_bytes);
            return Err(errno);
        }
        // Page 0 is nobody's neighbour. Writing its record first spares the fault of reading it first.
        (*layout.record(0)).kind.set(Kind::Metadata);
    }
    Ok(())
}

/// Commits the records and bitmaps of a chunk.
///
/// # Errors
/// The kernel's; nothing stays committed.
pub fn commit_chunk<O: Os>(os: &O, layout: &Layout, chunk: u32) -> Result<(), Errno> {
    let first = chunk * CHUNK_PAGES as u32;
    let records = layout.record(first).cast::<u8>();
    let record_bytes = CHUNK_PAGES * size_of::<Span>();
    // SAFETY: see the module header.
    unsafe {
        os.commit(records, record_bytes, true)?;
        if let Err(errno) = os.commit(layout.bitmap(first).cast(), CHUNK_PAGES * BITMAP_BYTES, true) {
            let _ = os.release(records, record_bytes);
            return Err(errno);
        }
    }
    Ok(())
}
