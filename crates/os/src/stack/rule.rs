//! Rules: how to get from a function's registers to its caller's, at one instruction.
//!
//! ```text
//!  bit   0        24     25      27            32                  48                  64
//!  word  │ offset │ base │ return │ frame ptr   │ return address at │ frame pointer at  │
//!        │        │      │ address│ same, lost  │ distance, signed  │ distance, signed  │
//!        │        │      │ same,  │ 29: no rule │                   │                   │
//!        │        │      │ lost   │             │                   │                   │
//! ```
//!
//! A stack of any program is made of some hundreds of rules, applied again and again: applying a word takes few instructions.

use super::registers::{Registers, plain};
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

/// Where a function's caller had a register's value, for certain registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the register still.
    Same,
    /// At this address.
    At(usize),
    /// It is lost.
    Lost,
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

/// Bits of an offset.
pub(super) const OFFSET_BITS: u32 = 24;

const BASE_IS_FRAME: u64 = 1 << OFFSET_BITS;
const RETURN_SAME: u64 = 1 << 25;
const RETURN_LOST: u64 = 1 << 26;
const FRAME_SAME: u64 = 1 << 27;
const FRAME_LOST: u64 = 1 << 28;

/// A rule as a word, or that there is none. See the module header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleWord(pub(super) u64);

impl RuleWord {
    /// There is no rule.
    pub(super) const NONE: Self = Self(1 << 29);

    /// What holds for code that keeps frame pointers, behind the first instructions of a function: two words are saved where the frame pointer is.
    pub(super) const BY_FRAME_POINTER: Self = {
        const WORD: u16 = size_of::<usize>() as u16;
        let [return_address, frame_pointer] = [WORD.wrapping_neg() as u64, (2 * WORD).wrapping_neg() as u64];
        Self(BASE_IS_FRAME | (2 * WORD) as u64 | (return_address << 32) | (frame_pointer << 48))
    };

    /// The rule as a word; none without a rule.
    pub(super) fn new(rule: Option<Rule>) -> Self {
        let Some(rule) = rule else { return Self::NONE };
        let distance = |saved: Saved, same: u64, lost: u64, shift: u32| match saved {
            Saved::Same => same,
            Saved::Lost => lost,
            Saved::At(distance) => u64::from(distance as u16) << shift,
        };
        let base = if rule.base == Base::Frame { BASE_IS_FRAME } else { 0 };
        Self(
            u64::from(rule.offset)
                | base
                | distance(rule.return_address, RETURN_SAME, RETURN_LOST, 32)
                | distance(rule.frame_pointer, FRAME_SAME, FRAME_LOST, 48),
        )
    }

    /// Whether the frame's address is found from the frame pointer.
    pub(super) fn is_by_frame(self) -> bool {
        self.0 & BASE_IS_FRAME != 0
    }

    /// Whether the function has no caller.
    pub(super) fn is_outermost(self) -> bool {
        self.0 & RETURN_LOST != 0
    }

    /// The frame's address, and where the caller's return address and frame pointer are, of a function with these registers.
    #[inline(always)]
    pub(super) fn places(self, at: &Registers) -> (usize, Place, Place) {
        let word = self.0;
        let base = if word & BASE_IS_FRAME == 0 { at.stack } else { at.frame };
        let stack = base.wrapping_add((word & (BASE_IS_FRAME - 1)) as usize);
        let place = |same: u64, lost: u64, shift: u32| {
            if word & (same | lost) == 0 {
                Place::At(stack.wrapping_add_signed(((word >> shift) as i16).into()))
            } else if word & same != 0 {
                Place::Same
            } else {
                Place::Lost
            }
        };
        (stack, place(RETURN_SAME, RETURN_LOST, 32), place(FRAME_SAME, FRAME_LOST, 48))
    }

    /// The registers of the caller of the function that has these; `None` if they are lost or cannot be read. Only the innermost function can have its
    /// return address in a register still.
    #[inline(always)]
    pub(super) fn caller(self, at: &Registers, reader: &mut Reader) -> Option<Registers> {
        let (stack, return_address, frame_pointer) = self.places(at);
        let code = match return_address {
            Place::At(place) => reader.word(place)?,
            Place::Same if at.link != 0 => at.link,
            Place::Same | Place::Lost => return None,
        };
        let frame = match frame_pointer {
            Place::At(place) => reader.word(place)?,
            Place::Same => at.frame,
            Place::Lost => 0,
        };
        Some(Registers { code: plain(code), stack, frame, link: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Registers = Registers { code: 1, stack: 0, frame: 0x77, link: 0 };

    fn caller(rule: Rule, at: &Registers) -> Option<Registers> {
        RuleWord::new(Some(rule)).caller(at, &mut Reader::new())
    }

    #[test]
    fn a_rule_says_where_the_frame_is_and_what_is_saved_there() {
        let words = [10usize, 11, 12, 13, 14, 15];
        let start = words.as_ptr().expose_provenance();
        let rule = Rule { base: Base::Stack, offset: 40, return_address: Saved::At(-8), frame_pointer: Saved::At(-16) };
        let at = Registers { stack: start, ..AT };
        let found = Registers { code: 14, stack: start + 40, frame: 13, link: 0 };
        assert_eq!(caller(rule, &at), Some(found));
        assert_eq!(caller(Rule { frame_pointer: Saved::Same, ..rule }, &at), Some(Registers { frame: 0x77, ..found }));
        assert_eq!(caller(Rule { frame_pointer: Saved::Lost, ..rule }, &at), Some(Registers { frame: 0, ..found }));
        let by_frame = Rule { base: Base::Frame, ..rule };
        assert_eq!(caller(by_frame, &Registers { stack: 0, frame: start, ..AT }), Some(found));
        let above = Rule { offset: 0, return_address: Saved::At(8), frame_pointer: Saved::At(16), ..rule };
        assert_eq!(caller(above, &at), Some(Registers { code: 11, stack: start, frame: 12, link: 0 }));
    }

    #[test]
    fn a_frame_pointer_leads_to_what_a_function_saved_first() {
        let words = RuleWord::new(Some(Rule {
            base: Base::Frame,
            offset: 2 * size_of::<usize>() as u32,
            return_address: Saved::At(-(size_of::<usize>() as i16)),
            frame_pointer: Saved::At(-2 * size_of::<usize>() as i16),
        }));
        assert_eq!(RuleWord::BY_FRAME_POINTER, words);
    }

    #[test]
    fn a_return_address_is_in_a_register_only_if_there_is_one_and_a_lost_one_ends_the_stack() {
        let rule = Rule { base: Base::Stack, offset: 0, return_address: Saved::Same, frame_pointer: Saved::Same };
        assert_eq!(caller(rule, &AT), None);
        assert_eq!(caller(rule, &Registers { link: 9, ..AT }).map(|caller| caller.code), Some(9));
        assert_eq!(caller(Rule { return_address: Saved::Lost, ..rule }, &Registers { link: 9, ..AT }), None);
    }

    #[test]
    fn the_largest_distances_fit_into_a_word_and_no_rule_is_like_none() {
        for far in [i16::MIN, -8, 0, i16::MAX] {
            let rule = Rule {
                base: Base::Frame,
                offset: (1 << 24) - 1,
                return_address: Saved::At(far),
                frame_pointer: Saved::At(far),
            };
            let word = RuleWord::new(Some(rule)).0;
            assert_eq!([(word >> 32) as i16, (word >> 48) as i16], [far; 2]);
            assert_eq!(word & ((1 << 24) - 1), (1 << 24) - 1);
            assert_eq!(word & RuleWord::NONE.0, 0);
        }
    }
}
