//! Rules that were found, so that the next stack with the same code address does not search.
//!
//! ```text
//!  entry   check    code address, exclusive-or the rule
//!          rule     a word (`rule::RuleWord`)
//! ```
//!
//! Two threads may write an entry at once, and a reader may see one word of each: the check does not fit then, and the entry counts as empty.
//! A code address has two places. A new rule takes the first, and what was there goes to the second: so two addresses of one stack that share
//! a place do not drive each other out, which would cost a search for each stack. After an object was unloaded and another loaded in its place, a rule may be
//! wrong: then a stack is.
//!
//! The entries are mapped when the first rule is kept: most processes take no stack. Without memory for them no rule is kept.

use super::rule::RuleWord;
use crate::late::Late;
use core::sync::atomic::{AtomicU64, Ordering};

/// Entries, a power of two: programs allocate in some hundreds of places.
const ENTRIES: usize = 1024;

/// Words of an entry.
const WORDS: usize = 2;

struct Entry<'a> {
    check: &'a AtomicU64,
    rule: &'a AtomicU64,
}

/// The words of all entries.
type Words = [AtomicU64; ENTRIES * WORDS];

/// See the module header.
pub(super) struct RuleCache(Late<Words>);

/// The process's.
pub(super) static RULES: RuleCache = RuleCache::new();

impl RuleCache {
    const fn new() -> Self {
        Self(Late::new())
    }

    /// The place that a new rule takes, and the one that an older rule moves to.
    fn places(words: &Words, code: usize) -> [Entry<'_>; 2] {
        let mixed = (code as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let first = mixed as usize % ENTRIES;
        [first, first ^ 1].map(|entry| Entry { check: &words[entry * WORDS], rule: &words[entry * WORDS + 1] })
    }

    /// The rule of a code address, which is not 0; `None` if the cache does not know.
    #[inline]
    pub(super) fn get(&self, code: usize) -> Option<RuleWord> {
        Self::places(self.0.get()?, code).into_iter().find_map(|entry| {
            let (check, rule) = (entry.check.load(Ordering::Relaxed), entry.rule.load(Ordering::Relaxed));
            (check ^ rule == code as u64).then_some(RuleWord(rule))
        })
    }

    /// Keeps what was found.
    pub(super) fn put(&self, code: usize, rule: RuleWord) {
        let Some(words) = self.0.get_mapped() else { return };
        let [first, second] = Self::places(words, code);
        second.check.store(first.check.load(Ordering::Relaxed), Ordering::Relaxed);
        second.rule.store(first.rule.load(Ordering::Relaxed), Ordering::Relaxed);
        first.check.store(code as u64 ^ rule.0, Ordering::Relaxed);
        first.rule.store(rule.0, Ordering::Relaxed);
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
    fn two_addresses_that_share_a_place_are_both_known() {
        let cache = RuleCache::new();
        let words = cache.0.get_mapped().unwrap();
        let first = |code: usize| core::ptr::from_ref(RuleCache::places(words, code)[0].check);
        let same = |code: &usize| first(*code) == first(0x1000);
        let other = (0x1001..0x0100_0000).find(same).unwrap();
        cache.put(0x1000, RuleWord(16));
        cache.put(other, RuleWord(24));
        assert_eq!([0x1000, other].map(|code| cache.get(code)), [Some(RuleWord(16)), Some(RuleWord(24))]);
    }

    #[test]
    fn an_entry_half_written_is_no_entry() {
        let cache = RuleCache::new();
        cache.put(0x1000, RuleWord::NONE);
        RuleCache::places(cache.0.get().unwrap(), 0x1000)[0].rule.store(5, Ordering::Relaxed);
        assert_eq!(cache.get(0x1000), None);
    }
}
