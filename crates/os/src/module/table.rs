//! Which loaded object an address is in, where the C library cannot say so without a lock (musl, glibc before 2.35).
//!
//! ```text
//!  /proc/self/maps ─▶ each executable mapping of a file, and where the file's beginning is mapped
//!                       └▶ its ELF header, in memory ─▶ bias, and address of `.eh_frame_hdr` ─▶ a row
//! ```
//!
//! The loader is not asked: its lock may be held by this thread, which loads a library just now. When an address is in no row, the table is made again, but not twice in
//! [`AGAIN_MS`], because code that a program generates is in no object ever. So the frames of a library that was loaded in that time may be missing.
//!
//! Threads: any, a signal handler included. One at a time makes the table; who looks meanwhile finds nothing, and its stack ends there or goes on by frame
//! pointers. Rows of objects that were unloaded stay until the table is made again: all memory is read with the kernel's leave (`readable`).
//!
//! Cost: some milliseconds to make the table, mostly the kernel's; the rows are searched one by one, and the rules that are found are cached.

use crate::readable::Reader;
use crate::{clock, process, read_pieces};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// Executable mappings that there is room for.
const ROWS: usize = 256;

/// The table is not made twice in so many milliseconds.
const AGAIN_MS: u64 = 100;

/// An executable mapping of an object.
struct Row {
    start: AtomicUsize,
    end: AtomicUsize,
    bias: AtomicUsize,
    frame_info: AtomicUsize,
}

/// What is known of the object that an address is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Where the mapping starts and ends.
    pub(super) start: usize,
    pub(super) end: usize,
    /// What is added to the object's addresses.
    pub(super) bias: usize,
    /// Address of its `.eh_frame_hdr`; 0 if it has none.
    pub(super) frame_info: usize,
}

/// See the module header.
pub(super) struct Table {
    rows: [Row; ROWS],
    len: AtomicUsize,
    /// Odd while the rows are written.
    version: AtomicU32,
    /// The process that makes it; 0: none. A forked child takes over from its parent, whose thread it does not have.
    maker: AtomicI32,
    /// When it was made; 0: never.
    made_ms: AtomicU64,
}

/// The process's.
pub(super) static TABLE: Table = Table::new();

impl Table {
    pub(super) const fn new() -> Self {
        Self {
            rows: [const { Row::none() }; ROWS],
            len: AtomicUsize::new(0),
            version: AtomicU32::new(0),
            maker: AtomicI32::new(0),
            made_ms: AtomicU64::new(0),
        }
    }

    /// The object that `at` is in.
    pub(super) fn find(&self, at: usize) -> Option<Found> {
        if let Some(found) = self.look(at) {
            return Some(found);
        }
        let now_ms = clock::monotonic_us() / 1000 + 1;
        let made_ms = self.made_ms.load(Ordering::Relaxed);
        let is_due = made_ms == 0 || now_ms >= made_ms + AGAIN_MS;
        if !is_due || !self.begin() {
            return None;
        }
        self.make();
        self.made_ms.store(now_ms, Ordering::Relaxed);
        self.maker.store(0, Ordering::Release);
        self.look(at)
    }

    /// Whether the calling thread is to make the table.
    fn begin(&self) -> bool {
        let (own, maker) = (process::id(), self.maker.load(Ordering::Relaxed));
        maker != own && self.maker.compare_exchange(maker, own, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn look(&self, at: usize) -> Option<Found> {
        let version = self.version.load(Ordering::Acquire);
        if version % 2 != 0 {
            return None;
        }
        let rows = self.rows.get(..self.len.load(Ordering::Relaxed))?;
        let found = rows.iter().map(Row::load).find(|row| (row.start..row.end).contains(&at));
        fence(Ordering::Acquire);
        if self.version.load(Ordering::Relaxed) == version { found } else { None }
    }

    fn make(&self) {
        // Odd already, if a fork interrupted it.
        let writing = self.version.load(Ordering::Relaxed) | 1;
        self.version.store(writing, Ordering::Relaxed);
        fence(Ordering::Release);
        let (mut n, mut file) = (0, Beginning::default());
        // Without the list, the table has what was read of it.
        let _ = for_each_mapping(|mapping| {
            if mapping.begins_a_file() {
                file = Beginning { file: mapping.file, at: mapping.start };
            }
            let found = (mapping.is_executable && mapping.file == file.file)
                .then(|| object(file.at))
                .flatten()
                .zip(self.rows.get(n));
            if let Some(((bias, frame_info), row)) = found {
                row.store(Found { start: mapping.start, end: mapping.end, bias, frame_info });
                n += 1;
            }
        });
        self.len.store(n, Ordering::Relaxed);
        self.version.store(writing.wrapping_add(1), Ordering::Release);
    }
}

impl Row {
    const fn none() -> Self {
        Self {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            bias: AtomicUsize::new(0),
            frame_info: AtomicUsize::new(0),
        }
    }

    fn load(&self) -> Found {
        Found {
            start: self.start.load(Ordering::Relaxed),
            end: self.end.load(Ordering::Relaxed),
            bias: self.bias.load(Ordering::Relaxed),
            frame_info: self.frame_info.load(Ordering::Relaxed),
        }
    }

    fn store(&self, found: Found) {
        self.start.store(found.start, Ordering::Relaxed);
        self.end.store(found.end, Ordering::Relaxed);
        self.bias.store(found.bias, Ordering::Relaxed);
        self.frame_info.store(found.frame_info, Ordering::Relaxed);
    }
}

/// Where the beginning of the last file is mapped, and which file that is.
#[derive(Default)]
struct Beginning {
    file: u64,
    at: usize,
}

/// A line of `/proc/self/maps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mapping {
    start: usize,
    end: usize,
    is_executable: bool,
    offset: u64,
    /// The inode; 0 of memory without a file, which the kernel's own object (vdso) is as well.
    file: u64,
}

impl Mapping {
    /// Whether a file's beginning may be mapped here, or the kernel's own object. Memory without a file may lie between the parts of one file: an emulator
    /// shows what it keeps free there.
    fn begins_a_file(&self) -> bool {
        self.offset == 0 && (self.file != 0 || self.is_executable)
    }
}

/// Calls `visit` with each mapping of the process.
fn for_each_mapping(mut visit: impl FnMut(Mapping)) -> Result<(), crate::Errno> {
    // What comes before the path.
    let (mut line, mut len) = ([0u8; 96], 0);
    read_pieces(c"/proc/self/maps", &mut [0; 1024], |piece| {
        for &byte in piece {
            if byte == b'\n' {
                line.get(..len).and_then(parse).into_iter().for_each(&mut visit);
                len = 0;
            } else if let Some(place) = line.get_mut(len) {
                *place = byte;
                len += 1;
            }
        }
        Ok(())
    })
}

/// `START-END RIGHTS OFFSET DEVICE INODE …`.
fn parse(line: &[u8]) -> Option<Mapping> {
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let mut range = words.next()?.split(|&byte| byte == b'-');
    let (start, end) = (number(range.next()?, 16)?, number(range.next()?, 16)?);
    let (rights, offset, _device, file) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(Mapping {
        start: usize::try_from(start).ok()?,
        end: usize::try_from(end).ok()?,
        is_executable: rights.get(2) == Some(&b'x'),
        offset: number(offset, 16)?,
        file: number(file, 10)?,
    })
}

fn number(text: &[u8], radix: u32) -> Option<u64> {
    u64::from_str_radix(core::str::from_utf8(text).ok()?, radix).ok()
}

/// Bias and address of `.eh_frame_hdr` of the object whose file begins at `at`.
fn object(at: usize) -> Option<(usize, usize)> {
    /// Where the fields are in the headers of files for this processor's width.
    #[cfg(target_pointer_width = "64")]
    const FIELDS: Fields = Fields { table: 32, row_bytes: 54, n_rows: 56, offset: 8, address: 16 };
    #[cfg(not(target_pointer_width = "64"))]
    const FIELDS: Fields = Fields { table: 28, row_bytes: 42, n_rows: 44, offset: 4, address: 8 };
    const LOADED: u32 = 1;
    const FRAME_INFO: u32 = 0x6474_e550;
    let mut reader = Reader::new();
    if reader.bytes::<4>(at)? != *b"\x7fELF" {
        return None;
    }
    let mut half = |place: usize| reader.bytes(place).map(|bytes| usize::from(u16::from_ne_bytes(bytes)));
    let (row_bytes, n_rows) = (half(at + FIELDS.row_bytes)?, half(at + FIELDS.n_rows)?);
    let mut word = |place: usize| reader.bytes(place).map(usize::from_ne_bytes);
    let table = at.checked_add(word(at + FIELDS.table)?)?;
    let (mut bias, mut info) = (None, None);
    for row in (0..n_rows).map(|n| table.wrapping_add(n * row_bytes)) {
        let (offset, address) = (word(row + FIELDS.offset)?, word(row + FIELDS.address)?);
        match Reader::new().bytes(row).map(u32::from_ne_bytes)? {
            LOADED if bias.is_none() => bias = Some(at.wrapping_sub(address.wrapping_sub(offset))),
            FRAME_INFO => info = Some(address),
            _ => {}
        }
    }
    let bias = bias?;
    Some((bias, info.map_or(0, |address| bias.wrapping_add(address))))
}

/// See [`object`].
struct Fields {
    table: usize,
    row_bytes: usize,
    n_rows: usize,
    offset: usize,
    address: usize,
}

#[cfg(test)]
mod tests;
