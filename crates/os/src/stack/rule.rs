//! Rules: how to get from a function's registers to its caller's, at one instruction.

use crate::readable::Reader;

/// What a frame's address is found from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// The stack pointer.
    Stack,
    /// The frame pointer.
    Frame,
}

/// Where a function's caller had a register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saved {
    /// In the register still.
    Same,
    /// At this distance from the frame's address.
    At(i16),
    /// It is lost: for a return address, the stack ends.
    Lost,
}

impl Saved {
    /// The value, if it can be had: `register` is what the register has.
    pub(super) fn value(self, frame: usize, register: Option<usize>, reader: &mut Reader) -> Option<usize> {
        match self {
            Self::Same => register,
            Self::At(distance) => reader.word(frame.wrapping_add_signed(distance.into())),
            Self::Lost => None,
        }
    }

    fn to_bits(self) -> u64 {
        match self {
            Self::Same => 0,
            Self::Lost => 1,
            Self::At(distance) => 2 | u64::from(distance.cast_unsigned()) << 2,
        }
    }

    fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Self::Same,
            1 => Self::Lost,
            _ => Self::At(((bits >> 2) as u16).cast_signed()),
        }
    }
}

/// How to get from a function's registers to its caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// What the frame's address is found from.
    pub(super) base: Base,
    /// Its distance from there.
    pub(super) offset: u32,
    /// Where the return address is.
    pub(super) return_address: Saved,
    /// Where the caller's frame pointer is.
    pub(super) frame_pointer: Saved,
}

/// Of [`Rule::to_word`]: bits of the offset.
pub(super) const OFFSET_BITS: u32 = 24;
/// Bits of a place.
const SAVED_BITS: u32 = 18;

impl Rule {
    /// The frame's address: the stack pointer of the caller.
    pub(super) fn frame(self, stack: usize, frame: usize) -> usize {
        let base = match self.base {
            Base::Stack => stack,
            Base::Frame => frame,
        };
        base.wrapping_add(self.offset as usize)
    }

    /// The rule as a word, whose highest bit is 0.
    pub(super) fn to_word(self) -> u64 {
        u64::from(self.offset)
            | u64::from(self.base == Base::Frame) << OFFSET_BITS
            | self.return_address.to_bits() << (OFFSET_BITS + 1)
            | self.frame_pointer.to_bits() << (OFFSET_BITS + 1 + SAVED_BITS)
    }

    /// The rule of a word.
    pub(super) fn from_word(word: u64) -> Self {
        let saved = |shift: u32| Saved::from_bits(word >> shift & ((1 << SAVED_BITS) - 1));
        Self {
            base: if word >> OFFSET_BITS & 1 == 1 { Base::Frame } else { Base::Stack },
            offset: (word & ((1 << OFFSET_BITS) - 1)) as u32,
            return_address: saved(OFFSET_BITS + 1),
            frame_pointer: saved(OFFSET_BITS + 1 + SAVED_BITS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_the_same_after_it_was_a_word() {
        for base in [Base::Stack, Base::Frame] {
            for offset in [0, 8, (1 << 24) - 8] {
                for saved in [Saved::Same, Saved::Lost, Saved::At(-8), Saved::At(i16::MIN), Saved::At(i16::MAX)] {
                    let rule = Rule { base, offset, return_address: saved, frame_pointer: Saved::At(-16) };
                    assert_eq!(Rule::from_word(rule.to_word()), rule);
                    assert_eq!(rule.to_word() >> 63, 0);
                    let other = Rule { return_address: Saved::At(-8), frame_pointer: saved, ..rule };
                    assert_eq!(Rule::from_word(other.to_word()), other);
                }
            }
        }
    }
}
