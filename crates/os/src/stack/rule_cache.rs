//! Rules that were found, so that the next stack with the same code address does not search.
//!
//! ```text
//!  entry   check    code address, exclusive-or the rule
//!          rule     a word (`rule::RuleWord`)
//! ```
//!
//! Two threads may write an entry at once, and a reader may see one word of each: the check does not fit then, and the entry counts as empty.
//! An entry goes when another code address needs its place. After an object was unloaded and another loaded in its place, a rule may be
//! wrong: then a stack is.

use super::rule::RuleWord;
use core::sync::atomic::{AtomicU64, Ordering};

/// Entries, a power of two: programs allocate in some hundreds of places.
const ENTRIES: usize = 1024;

struct Entry {
    check: AtomicU64,
    rule: AtomicU64,
}

/// See the module header.
pub(super) struct RuleCache([Entry; ENTRIES]);

/// The process's.
pub(super) static RULES: RuleCache = RuleCache::new();

impl RuleCache {
    const fn new() -> Self {
        Self([const { Entry { check: AtomicU64::new(0), rule: AtomicU64::new(0) } }; ENTRIES])
    }

    fn entry(&self, code: usize) -> &Entry {
        let mixed = (code as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.0[mixed as usize % ENTRIES]
    }

    /// The rule of a code address, which is not 0; `None` if the cache does not know.
    #[inline]
    pub(super) fn get(&self, code: usize) -> Option<RuleWord> {
        let entry = self.entry(code);
        let (check, rule) = (entry.check.load(Ordering::Relaxed), entry.rule.load(Ordering::Relaxed));
        (check ^ rule == code as u64).then_some(RuleWord(rule))
    }

    /// Keeps what was found.
    pub(super) fn put(&self, code: usize, rule: RuleWord) {
        let entry = self.entry(code);
        entry.check.store(code as u64 ^ rule.0, Ordering::Relaxed);
        entry.rule.store(rule.0, Ordering::Relaxed);
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
    fn an_entry_half_written_is_no_entry() {
        let cache = RuleCache::new();
        cache.put(0x1000, RuleWord::NONE);
        cache.entry(0x1000).rule.store(5, Ordering::Relaxed);
        assert_eq!(cache.get(0x1000), None);
    }
}
