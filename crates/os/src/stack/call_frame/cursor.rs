//! Reading call frame information byte by byte, and the fixed part of its entries.
//!
//! What cannot be read counts as zero, and the cursor notes it: so its user asks once, at the end. A cursor that has failed stays where it is.

use crate::readable::Reader;

/// A place in memory that is read onwards.
pub(super) struct Cursor {
    at: usize,
    reader: Reader,
    has_failed: bool,
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
        Self { at, reader: Reader::new(), has_failed: false }
    }

    /// Goes on at `at`.
    pub(super) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// Where it is.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Whether something could not be read, or made no sense.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Notes that something makes no sense.
    pub(super) fn fail(&mut self) {
        self.has_failed = true;
    }

    /// The next bytes.
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        match self.reader.bytes(self.at) {
            Some(bytes) if !self.has_failed => {
                self.at += N;
                bytes
            }
            _ => {
                self.fail();
                [0; N]
            }
        }
    }

    /// The next byte.
    #[inline(never)]
    pub(super) fn u8(&mut self) -> u8 {
        self.bytes::<1>()[0]
    }

    /// The next two bytes.
    pub(super) fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.bytes())
    }

    /// The next four bytes.
    #[inline(never)]
    pub(super) fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.bytes())
    }

    /// The next eight bytes.
    pub(super) fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.bytes())
    }

    /// The next four bytes, signed.
    pub(super) fn i32(&mut self) -> i32 {
        self.u32() as i32
    }

    /// The next number of any length: seven bits a byte, the lowest first.
    pub(super) fn uleb(&mut self) -> u64 {
        self.leb().0
    }

    /// As [`Cursor::uleb`], signed.
    pub(super) fn sleb(&mut self) -> i64 {
        let (number, shift, is_negative) = self.leb();
        if is_negative && shift < i64::BITS { number as i64 | -1 << shift } else { number as i64 }
    }

    /// A number, how many bits it has, and the highest of these.
    #[inline(never)]
    fn leb(&mut self) -> (u64, u32, bool) {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.u8();
            match u64::from(byte & 0x7f).checked_shl(shift) {
                Some(part) => number |= part,
                None => self.fail(),
            }
            shift += 7;
            if byte & 0x80 == 0 || self.has_failed {
                return (number, shift, byte & 0x40 != 0);
            }
        }
    }

    /// Skips `bytes`.
    pub(super) fn skip(&mut self, bytes: u64) {
        match usize::try_from(bytes).ok().and_then(|bytes| self.at.checked_add(bytes)) {
            Some(at) => self.at = at,
            None => self.fail(),
        }
    }

    /// The entry at `at` of the function that starts at `start`. It has no meaning if the cursor has failed.
    pub(super) fn entry(&mut self, (start, at): (usize, usize)) -> Entry {
        self.seek(at);
        let end = self.end();
        let here = self.at;
        let common_at = here.wrapping_sub(self.u32() as usize);
        let body = self.at;
        let common = self.common(common_at);
        self.seek(body);
        let width = width(common.encoding);
        self.skip(width);
        let bytes = match width {
            4 => self.u32() as usize,
            8 => usize::from_ne_bytes(self.bytes()),
            _ => 0,
        };
        if common.is_augmented {
            let more = self.uleb();
            self.skip(more);
        }
        Entry { common, start, bytes, instructions: self.at, end }
    }

    /// Where an entry ends whose length is next.
    fn end(&mut self) -> usize {
        let length = self.u32();
        if length == 0 || length == LONG {
            self.fail();
        }
        self.at.wrapping_add(length as usize)
    }

    fn common(&mut self, at: usize) -> Common {
        self.seek(at);
        let end = self.end();
        self.skip(4);
        let version = self.u8();
        let mut letters = [0; 8];
        let mut n = 0;
        loop {
            let letter = self.u8();
            match letters.get_mut(n) {
                _ if letter == 0 => break,
                Some(place) => *place = letter,
                None => self.fail(),
            }
            n += 1;
        }
        let (code_align, data_align) = (self.uleb(), self.sleb());
        if version == 1 {
            self.skip(1);
        } else {
            self.uleb();
        }
        let is_augmented = letters[0] == b'z';
        let mut common = Common { code_align, data_align, encoding: 0, is_augmented, instructions: self.at, end };
        if is_augmented {
            let more = self.uleb();
            common.instructions = self.at.wrapping_add(more as usize);
        }
        for letter in letters.into_iter().skip(1).take_while(|&letter| letter != 0) {
            match letter {
                b'R' => common.encoding = self.u8(),
                b'L' => self.skip(1),
                b'P' => {
                    let encoding = self.u8();
                    self.skip(width(encoding));
                }
                b'S' | b'B' => {}
                _ => self.fail(),
            }
        }
        if n > 0 && !is_augmented {
            self.fail();
        }
        common
    }
}

/// Bytes of an address in an encoding; 0 if that is not known.
fn width(encoding: u8) -> u64 {
    match encoding & 0x0f {
        0x03 | 0x0b => 4,
        0x00 | 0x04 | 0x0c => 8,
        _ => 0,
    }
}
