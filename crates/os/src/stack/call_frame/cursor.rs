//! Reading call frame information byte by byte, and the fixed part of its entries.

use crate::readable::Reader;

/// A place in memory that is read onwards.
pub(super) struct Cursor {
    at: usize,
    reader: Reader,
}

/// What the entries of many functions have in common (CIE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Common {
    /// Factor of distances between instructions.
    pub(super) code_align: u64,
    /// Factor of distances on the stack.
    pub(super) data_align: i64,
    /// How its entries write addresses.
    encoding: u8,
    /// Whether its entries have augmentation data.
    is_augmented: bool,
    /// Where its instructions start and end.
    pub(super) instructions: usize,
    /// See `instructions`.
    pub(super) end: usize,
}

/// A function's entry (FDE).
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) common: Common,
    /// Where the function starts.
    pub(super) start: usize,
    /// Its length.
    pub(super) bytes: usize,
    /// Where its instructions start and end.
    pub(super) instructions: usize,
    /// See `instructions`.
    pub(super) end: usize,
}

/// The length of an entry whose length has eight bytes: no compiler makes these.
const LONG: u32 = u32::MAX;

impl Cursor {
    /// Reads from `at` on.
    pub(super) fn new(at: usize) -> Self {
        Self { at, reader: Reader::new() }
    }

    /// Goes on at `at`.
    pub(super) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// Where it is.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next bytes.
    pub(super) fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.reader.bytes(self.at)?;
        self.at = self.at.checked_add(N)?;
        Some(bytes)
    }

    /// The next byte.
    pub(super) fn u8(&mut self) -> Option<u8> {
        self.bytes().map(|[byte]| byte)
    }

    /// The next two bytes.
    pub(super) fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_ne_bytes)
    }

    /// The next four bytes.
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_ne_bytes)
    }

    /// The next four bytes, signed.
    pub(super) fn i32(&mut self) -> Option<i32> {
        self.bytes().map(i32::from_ne_bytes)
    }

    /// The next number of any length: seven bits a byte, the lowest first.
    pub(super) fn uleb(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.u8()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    }

    /// As [`Cursor::uleb`], signed.
    pub(super) fn sleb(&mut self) -> Option<i64> {
        let (mut number, mut shift) = (0i64, 0);
        loop {
            let byte = self.u8()?;
            number |= i64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                let is_negative = byte & 0x40 != 0 && shift < i64::BITS;
                return Some(if is_negative { number | -1 << shift } else { number });
            }
        }
    }

    /// Skips `bytes`.
    pub(super) fn skip(&mut self, bytes: usize) -> Option<()> {
        self.at = self.at.checked_add(bytes)?;
        Some(())
    }

    /// The entry at `at` of the function that starts at `start`.
    pub(super) fn entry(&mut self, (start, at): (usize, usize)) -> Option<Entry> {
        self.seek(at);
        let length = self.u32()?;
        if length == 0 || length == LONG {
            return None;
        }
        let end = self.at.checked_add(length as usize)?;
        let here = self.at;
        let common_at = here.checked_sub(self.u32()? as usize)?;
        let body = self.at;
        let common = self.common(common_at)?;
        self.seek(body);
        let width = width(common.encoding)?;
        self.skip(width)?;
        let bytes = if width == 4 { self.u32()? as usize } else { usize::from_ne_bytes(self.bytes()?) };
        if common.is_augmented {
            let more = self.uleb()?;
            self.skip(usize::try_from(more).ok()?)?;
        }
        Some(Entry { common, start, bytes, instructions: self.at, end })
    }

    fn common(&mut self, at: usize) -> Option<Common> {
        self.seek(at);
        let length = self.u32()?;
        if length == 0 || length == LONG {
            return None;
        }
        let end = self.at.checked_add(length as usize)?;
        self.skip(4)?;
        let version = self.u8()?;
        let mut letters = [0; 8];
        let mut n = 0;
        loop {
            match self.u8()? {
                0 => break,
                letter => *letters.get_mut(n)? = letter,
            }
            n += 1;
        }
        let (code_align, data_align) = (self.uleb()?, self.sleb()?);
        if version == 1 {
            self.skip(1)?;
        } else {
            self.uleb()?;
        }
        let is_augmented = letters[0] == b'z';
        if n > 0 && !is_augmented {
            return None;
        }
        let mut common = Common { code_align, data_align, encoding: 0, is_augmented, instructions: self.at, end };
        if is_augmented {
            let more = self.uleb()?;
            common.instructions = self.at.checked_add(usize::try_from(more).ok()?)?;
            for letter in letters[1..n].iter() {
                match letter {
                    b'R' => common.encoding = self.u8()?,
                    b'L' => self.skip(1)?,
                    b'P' => {
                        let encoding = self.u8()?;
                        self.skip(width(encoding)?)?;
                    }
                    b'S' | b'B' => {}
                    _ => return None,
                }
            }
        }
        Some(common)
    }
}

/// Bytes of an address in an encoding.
fn width(encoding: u8) -> Option<usize> {
    match encoding & 0x0f {
        0x03 | 0x0b => Some(4),
        0x00 | 0x04 | 0x0c => Some(8),
        _ => None,
    }
}
