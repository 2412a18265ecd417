//! Reads the memory of another process, which this one traces.
//!
//! # Safety
//! `process_vm_readv` gets places in live buffers of this process, with their lengths; the kernel checks the addresses of the other one.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes of an entry of `/proc/PID/pagemap`.
const ENTRY_BYTES: u64 = 8;

/// The bits of an entry that say there is something in the page: in memory, or swapped out.
const HAS_CONTENTS: u64 = 1 << 63 | 1 << 62;

/// Most bytes that are read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Most pieces of one call: the kernel's own limit.
const MOST_PIECES: usize = 1024;

/// The memory of a process.
pub(super) struct Memory {
    number: i32,
    pagemap: Option<File>,
    page_bytes: u64,
}

impl Memory {
    /// The memory of the process that the thread `number` belongs to.
    pub(super) fn of(number: i32) -> Self {
        // SAFETY: the call takes a number, and returns one.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let pagemap = File::open(format!("/proc/{number}/pagemap")).ok();
        Self { number, pagemap, page_bytes: page_bytes.max(4096) as u64 }
    }

    /// Fills `buffer` from `address` on; returns how many bytes could be read.
    pub(super) fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let remote = libc::iovec { iov_base: address as usize as *mut libc::c_void, iov_len: buffer.len() };
        // SAFETY: `local` is the whole of a buffer that lives through the call, and nothing else uses it meanwhile.
        let read = unsafe { libc::process_vm_readv(self.number, &local, 1, &remote, 1, 0) };
        usize::try_from(read).unwrap_or(0)
    }

    /// The 64-bit word at an address, if it can be read.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        words_in(&self.bytes(address, 8)).next()
    }

    /// The bytes from `address` on; as many as there are in memory, at most `count`.
    pub(super) fn bytes(&self, address: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let mut done = 0;
        while done < count {
            let end = count.min(done + CHUNK_BYTES);
            let read = self.read(address + done as u64, &mut bytes[done..end]);
            done += read;
            if read == 0 {
                break;
            }
        }
        bytes.truncate(done);
        bytes
    }

    /// Calls `visit` with the contents of pieces of memory, each its address and its bytes. What cannot be read is left out.
    pub(super) fn read_pieces(&self, pieces: &[(u64, usize)], mut visit: impl FnMut(&[u8])) {
        for pieces in pieces.chunks(MOST_PIECES) {
            let mut buffer = vec![0u8; pieces.iter().map(|piece| piece.1).sum()];
            let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            let remote: Vec<libc::iovec> = pieces
                .iter()
                .map(|&(address, bytes)| libc::iovec {
                    iov_base: address as usize as *mut libc::c_void,
                    iov_len: bytes,
                })
                .collect();
            // SAFETY: `local` is the whole of a buffer that lives through the call; `remote` has as many elements as are stated.
            let read = unsafe {
                libc::process_vm_readv(self.number, &local, 1, remote.as_ptr(), remote.len() as libc::c_ulong, 0)
            };
            if usize::try_from(read) == Ok(buffer.len()) {
                visit(&buffer);
                continue;
            }
            for &(address, bytes) in pieces {
                visit(&self.bytes(address, bytes));
            }
        }
    }

    /// Calls `visit` with the contents of a range and their address, in large parts. Pages that nothing was ever written to are left out, so that memory that is
    /// only reserved costs nothing, here and in the process.
    pub(super) fn scan(&self, start: u64, end: u64, mut visit: impl FnMut(u64, &[u8])) {
        let mut from = start;
        while from < end {
            let to = end.min((from + CHUNK_BYTES as u64) & !(self.page_bytes - 1)).max(from + 1);
            for (from, to) in self.with_contents(from, to) {
                visit(from, &self.bytes(from, (to - from) as usize));
            }
            from = to;
        }
    }

    /// The parts of a range with pages that have contents.
    fn with_contents(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let first = start / self.page_bytes;
        let pages = end.div_ceil(self.page_bytes) - first;
        let mut entries = vec![0; (pages * ENTRY_BYTES) as usize];
        let read =
            self.pagemap.as_ref().is_some_and(|file| file.read_exact_at(&mut entries, first * ENTRY_BYTES).is_ok());
        if !read {
            return vec![(start, end)];
        }
        let mut parts: Vec<(u64, u64)> = Vec::new();
        for (page, entry) in (first..).zip(words_in(&entries)) {
            if entry & HAS_CONTENTS == 0 {
                continue;
            }
            let (from, to) = ((page * self.page_bytes).max(start), ((page + 1) * self.page_bytes).min(end));
            match parts.last_mut() {
                Some(last) if last.1 == from => last.1 = to,
                _ => parts.push((from, to)),
            }
        }
        parts
    }
}

/// The 64-bit words in bytes that start at a multiple of eight.
pub(super) fn words_in(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_has_in_memory_is_read_and_the_rest_is_left_out() {
        let own = Memory::of(std::process::id() as i32);
        let values: Vec<u64> = (0..10_000).collect();
        let start = values.as_ptr() as u64;
        assert_eq!(words_in(&own.bytes(start, 80_000)).collect::<Vec<_>>(), values);
        assert!(own.bytes(8, 8).is_empty());
        let mut sum = 0;
        own.scan(start, start + 80_000, |_, bytes| sum += words_in(bytes).sum::<u64>());
        assert_eq!(sum, values.iter().sum::<u64>());
        let mut pieces = Vec::new();
        // The second piece cannot be read.
        own.read_pieces(&[(start + 8, 8), (8, 8), (start + 16, 8)], |bytes| pieces.extend(words_in(bytes)));
        assert_eq!(pieces, [1, 2]);
    }
}
