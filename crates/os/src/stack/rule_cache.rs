//! Rules that were found, so that the next stack with the same code address does not search.
//!
//! ```text
//!  set     entry, entry      of the code addresses of one hash; a new rule takes the first, and what was there goes to the second
//!  entry   check             code address, exclusive-or the rule
//!          rule              a word (`rule::RuleWord`)
//! ```
//!
//! Two threads may write an entry at once, and a reader may see one word of each: the check does not fit then, and the entry counts as empty.
//! Two addresses of one stack that have one hash do not drive each other out, which would cost a search for each stack.
//!
//! The entries are mapped when the first rule is kept: most processes take no stack. Without memory for them no rule is kept.

use super::rule::RuleWord;
use crate::late::Late;
use core::sync::atomic::{AtomicU64, Ordering};

/// Sets, a power of two: programs allocate in some hundreds of places.
const SETS: usize = 512;

/// Words of an entry.
const WORDS: usize = 2;

/// Words of a set.
const SET_WORDS: usize = 2 * WORDS;

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
    pub(super) fn get(&self, code: usize) -> Option<RuleWord> {
        let (words, set) = (self.0.get()?, Self::set(code));
        let known = |entry: usize| {
            let (check, rule) = (words[entry].load(Ordering::Relaxed), words[entry + 1].load(Ordering::Relaxed));
            (check ^ rule == code as u64).then_some(RuleWord(rule))
        };
        known(set).or_else(|| known(set + WORDS))
    }

    /// Keeps what was found.
    pub(super) fn put(&self, code: usize, rule: RuleWord) {
        let Some(words) = self.0.get_mapped() else { return };
        for (at, new) in (Self::set(code)..).zip([code as u64 ^ rule.0, rule.0]) {
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
        cache.put(0x1000, RuleWord(16));
        cache.put(0x2001, RuleWord::NONE);
        assert_eq!(cache.get(0x1000), Some(RuleWord(16)));
        assert_eq!(cache.get(0x2001), Some(RuleWord::NONE));
        assert_eq!(cache.get(0x3000), None);
    }

    #[test]
    fn two_addresses_of_one_set_are_both_known_whichever_came_first() {
        let cache = RuleCache::new();
        let same = |code: &usize| RuleCache::set(*code) == RuleCache::set(0x1000);
        let other = (0x1001..0x0100_0000).find(same).unwrap();
        cache.put(0x1000, RuleWord(16));
        cache.put(other, RuleWord(24));
        assert_eq!([0x1000, other].map(|code| cache.get(code)), [Some(RuleWord(16)), Some(RuleWord(24))]);
    }

    #[test]
    fn an_entry_half_written_is_no_entry() {
        let cache = RuleCache::new();
        cache.put(0x1000, RuleWord::NONE);
        cache.0.get().unwrap()[RuleCache::set(0x1000) + 1].store(5, Ordering::Relaxed);
        assert_eq!(cache.get(0x1000), None);
    }
}
