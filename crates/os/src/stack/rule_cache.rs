//! Rules that were found, so that the next stack with the same code address does not search.
//!
//! ```text
//!  set     entry, entry      of the code addresses of one hash; a new rule takes the first, and what was there goes to the second
//!  entry   check             code address, exclusive-or the other words
//!          rule              a word (`rule::RuleWord`)
//!          row, digest       what the rule was found from (`call_frame::digest`), if its object can be unloaded; else 0
//! ```
//!
//! Two threads may write an entry at once, and a reader may see words of each: the check does not fit then, and the entry counts as empty.
//! Two addresses of one stack that have one hash do not drive each other out, which would cost a search for each stack.
//!
//! The entries are mapped when the first rule is kept: most processes take no stack. Without memory for them no rule is kept.

use super::rule::RuleWord;
use crate::late::Late;
use core::sync::atomic::{AtomicU64, Ordering};

/// Sets, a power of two: programs allocate in some hundreds of places.
const SETS: usize = 512;

/// Words of an entry.
const WORDS: usize = 4;

/// Words of a set.
const SET_WORDS: usize = 2 * WORDS;

/// A rule that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) rule: RuleWord,
    /// The row that led to it.
    pub(super) row: usize,
    /// What it was found from; 0 if its object stays.
    pub(super) digest: u64,
}

impl Kept {
    /// A rule of an object that stays.
    pub(super) fn for_good(rule: RuleWord) -> Self {
        Self { rule, row: 0, digest: 0 }
    }

    /// Whether its object stays.
    #[inline(always)]
    pub(super) fn is_for_good(&self) -> bool {
        self.digest == 0
    }
}

/// See the module header.
pub(super) struct RuleCache(Late<[AtomicU64; SETS * SET_WORDS]>);

/// The process's.
pub(super) static RULES: RuleCache = RuleCache::new();

impl RuleCache {
    const fn new() -> Self {
        Self(Late::new())
    }

    /// Where the words of an address's set begin.
    #[inline(always)]
    fn set(code: usize) -> usize {
        let mixed = (code as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        mixed as usize % SETS * SET_WORDS
    }

    /// The rule that is kept for a code address, which is not 0; `None` if the cache does not know.
    #[inline(always)]
    pub(super) fn get(&self, code: usize) -> Option<Kept> {
        let (words, set) = (self.0.get()?, Self::set(code));
        let known = |entry: usize| {
            let word = |n: usize| words[entry + n].load(Ordering::Relaxed);
            let (rule, row, digest) = (word(1), word(2), word(3));
            let is_its = word(0) ^ rule ^ row ^ digest == code as u64;
            is_its.then_some(Kept { rule: RuleWord(rule), row: row as usize, digest })
        };
        known(set).or_else(|| known(set + WORDS))
    }

    /// Keeps what was found.
    pub(super) fn put(&self, code: usize, Kept { rule: RuleWord(rule), row, digest }: Kept) {
        let Some(words) = self.0.get_mapped() else { return };
        let row = row as u64;
        for (at, new) in (Self::set(code)..).zip([code as u64 ^ rule ^ row ^ digest, rule, row, digest]) {
            words[at + WORDS].store(words[at].load(Ordering::Relaxed), Ordering::Relaxed);
            words[at].store(new, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_found_until_another_takes_its_place() {
        let cache = RuleCache::new();
        assert_eq!(cache.get(0x1000), None);
        cache.put(0x1000, Kept::for_good(RuleWord(16)));
        let none = Kept { row: 7, digest: 9, ..Kept::for_good(RuleWord::NONE) };
        cache.put(0x2001, none);
        assert_eq!(cache.get(0x1000), Some(Kept::for_good(RuleWord(16))));
        assert_eq!(cache.get(0x2001), Some(none));
        assert_eq!(cache.get(0x3000), None);
    }

    #[test]
    fn two_addresses_of_one_set_are_both_known_whichever_came_first() {
        let cache = RuleCache::new();
        let same = |code: &usize| RuleCache::set(*code) == RuleCache::set(0x1000);
        let other = (0x1001..0x0100_0000).find(same).unwrap();
        cache.put(0x1000, Kept::for_good(RuleWord(16)));
        cache.put(other, Kept::for_good(RuleWord(24)));
        assert_eq!(
            [0x1000, other].map(|code| cache.get(code)),
            [16, 24].map(|rule| Some(Kept::for_good(RuleWord(rule))))
        );
    }

    #[test]
    fn an_entry_half_written_is_no_entry() {
        let cache = RuleCache::new();
        cache.put(0x1000, Kept::for_good(RuleWord::NONE));
        cache.0.get().unwrap()[RuleCache::set(0x1000) + 1].store(5, Ordering::Relaxed);
        assert_eq!(cache.get(0x1000), None);
    }
}
