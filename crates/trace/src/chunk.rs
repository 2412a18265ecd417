//! A chunk: a header of 64 bytes, then words. All numbers are little-endian.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 4 | length of the chunk with its header, a multiple of 4 KiB |
//! | 12 | 4 | zero |
//! | 16 | 8 | the [`seal`]: 0 while words are added, then the length of the words and their checksum |
//! | 24 | 4 | number of the recorder: the chunks of a recorder follow one another |
//! | 28 | 4 | number of the thread that it records at the start |
//! | 32 | 8 | the recorder's chunks before this one |
//! | 40 | 8 | time at the start, in microseconds |
//! | 48 | 8 | sequence number at the start |
//! | 56 | 8 | checksum of the header without this and the seal |

use crate::event::Damage;
use crate::events::Events;

/// What a chunk begins with: no word has these bytes at its start, as no file has them at a multiple of 4 KiB by chance.
pub const MAGIC: [u8; 8] = *b"FSchunk\x01";

/// Length of a chunk's header.
pub const HEADER_BYTES: usize = 64;

/// Chunks begin at multiples of this, and their lengths are.
pub const UNIT_BYTES: usize = 4096;

/// Where the seal is in the header.
const SEAL_AT: usize = 16;

/// The header of a chunk to which words are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Length of the chunk with its header, a multiple of [`UNIT_BYTES`].
    pub len: u32,
    /// Number of the recorder.
    pub recorder: u32,
    /// Number of the thread that it records.
    pub thread: u32,
    /// The recorder's chunks before this one.
    pub place: u64,
    /// Time in microseconds.
    pub time_us: u64,
    /// Sequence number.
    pub sequence: u64,
}

impl Header {
    /// The header's bytes: unsealed.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.len.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.recorder.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.thread.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.place.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.time_us.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.sequence.to_le_bytes());
        let sum = header_checksum(&bytes);
        bytes[56..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

/// A checksum: a multiplication and a rotation for every eight bytes.
fn checksum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let mut sum = bytes.len() as u64;
    for word in &mut words {
        sum = mixed(sum, number(word));
    }
    mixed(sum, number(words.remainder()))
}

/// The seal of a chunk with these words: their length in the low 32 bits, and 32 bits of their checksum.
fn seal_of(words: &[u8]) -> u64 {
    checksum(words) << 32 | words.len() as u64 & 0xffff_ffff
}

/// Seals a chunk, of which `used` bytes are header and words. The seal is stored at once, so that a process that is killed meanwhile leaves no half of one.
pub fn seal(chunk: &mut [u8], used: usize) {
    let seal = chunk.get(HEADER_BYTES..used).map_or(0, seal_of);
    if let Some(place) = chunk.get_mut(SEAL_AT..SEAL_AT + 8) {
        place.copy_from_slice(&seal.to_le_bytes());
    }
}

#[inline]
fn mixed(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

fn header_checksum(bytes: &[u8; HEADER_BYTES]) -> u64 {
    mixed(checksum(&bytes[..SEAL_AT]), checksum(&bytes[24..56]))
}

/// The little-endian number of at most eight bytes.
fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    for (to, &from) in word.iter_mut().zip(bytes) {
        *to = from;
    }
    u64::from_le_bytes(word)
}

/// A chunk that was read.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// Its header.
    pub header: Header,
    /// Its words.
    words: &'a [u8],
    /// Whether no more words were to come.
    pub is_sealed: bool,
    /// Whether the file ends before the chunk does.
    pub is_cut: bool,
}

impl<'a> Chunk<'a> {
    /// The chunk at the start of `bytes`, which may go on.
    ///
    /// # Errors
    /// The header is damaged, or the words do not have their checksum.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        let head: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(Damage::Chunk)?;
        let at = |at: usize, len: usize| number(&head[at..at + len]);
        if head[..8] != MAGIC || at(56, 8) != header_checksum(head) {
            return Err(Damage::Chunk);
        }
        let header = Header {
            len: at(8, 4) as u32,
            recorder: at(24, 4) as u32,
            thread: at(28, 4) as u32,
            place: at(32, 8),
            time_us: at(40, 8),
            sequence: at(48, 8),
        };
        let (len, sealed) = (header.len as usize, at(SEAL_AT, 8));
        let used = (sealed & 0xffff_ffff) as usize;
        if len < UNIT_BYTES || len % UNIT_BYTES != 0 || used > len - HEADER_BYTES || (used == 0) != (sealed == 0) {
            return Err(Damage::Chunk);
        }
        let (is_sealed, is_cut) = (sealed != 0, bytes.len() < len);
        let there = &bytes[HEADER_BYTES..len.min(bytes.len())];
        let words = if is_sealed && used <= there.len() { &there[..used] } else { there };
        if is_sealed && !is_cut && seal_of(words) != sealed {
            return Err(Damage::Checksum { recorder: header.recorder, place: header.place });
        }
        Ok(Self { header, words, is_sealed, is_cut })
    }

    /// Bytes of its header and words; of a chunk without a seal, up to the last byte that is not zero.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        let words = self.words.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        HEADER_BYTES + if self.is_sealed { self.words.len() } else { words }
    }

    /// Its events.
    #[must_use]
    pub fn events(&self) -> Events<'a> {
        Events::new(self.words, self.header.thread, self.header.time_us, self.header.sequence)
    }
}

#[cfg(test)]
mod tests;
