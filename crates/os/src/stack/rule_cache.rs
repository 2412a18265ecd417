//! Rules that were found, so that the next stack with the same code address does not search.
//!
//! ```text
//!  entry   check    code address, exclusive-or the rule
//!          rule     a word ([`Rule`]), or that there is none
//! ```
//!
//! Two threads may write an entry at once, and a reader may see one word of each: the check does not fit then, and the entry counts as empty.
//! An entry goes when another code address needs its place. After an object was unloaded and another loaded in its place, a rule may be
//! wrong: then a stack is.

use super::rule::Rule;
use core::sync::atomic::{AtomicU64, Ordering};

/// Entries, a power of two: programs allocate in some hundreds of places.
const ENTRIES: usize = 1024;

/// The word of a code address without a rule.
const NO_RULE: u64 = 1 << 63;

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

    /// The rule of a code address, or that it has none; `None` if the cache does not know.
    pub(super) fn get(&self, code: usize) -> Option<Option<Rule>> {
        let entry = self.entry(code);
        let (check, rule) = (entry.check.load(Ordering::Relaxed), entry.rule.load(Ordering::Relaxed));
        (check ^ rule == code as u64 && code != 0).then(|| (rule != NO_RULE).then(|| Rule::from_word(rule)))
    }

    /// Keeps what was found.
    pub(super) fn put(&self, code: usize, rule: Option<Rule>) {
        let (entry, word) = (self.entry(code), rule.map_or(NO_RULE, Rule::to_word));
        entry.check.store(code as u64 ^ word, Ordering::Relaxed);
        entry.rule.store(word, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::rule::{Base, Saved};

    #[test]
    fn a_rule_is_found_until_another_takes_its_place() {
        let cache = RuleCache::new();
        let rule = Rule { base: Base::Frame, offset: 16, return_address: Saved::At(-8), frame_pointer: Saved::At(-16) };
        assert_eq!(cache.get(0x1000), None);
        cache.put(0x1000, Some(rule));
        cache.put(0x2001, None);
        assert_eq!(cache.get(0x1000), Some(Some(rule)));
        assert_eq!(cache.get(0x2001), Some(None));
        assert_eq!(cache.get(0x3000), None);
    }

    #[test]
    fn an_entry_half_written_is_no_entry() {
        let cache = RuleCache::new();
        cache.put(0x1000, None);
        cache.entry(0x1000).rule.store(5, Ordering::Relaxed);
        assert_eq!(cache.get(0x1000), None);
    }
}
