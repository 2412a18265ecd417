//! Early purges: a small part of dirty memory goes back long before the decay time.
//!
//! Memory that a program uses again it mostly uses again within milliseconds. What stays dirty for longer than that is often never used again while
//! the program grows elsewhere: a Python program that has written JSON maps new arenas of its own, and the buffers of the JSON text count against it until the
//! decay time has passed. So dirty runs go back after a fiftieth of the decay time, but only as much in eight decay times as costs at most a
//! thousandth of the time if all of it is wasted: 16 MiB, 4096 page faults of about 2 µs. `docs/decisions/0043-early-purges.md` has the measurements.
//!
//! Of the same budget, dirty runs go back at once
//! - when a large block is freed, as far as more than 1 MiB is dirty, or than a 32nd of what is in use ([`EarlyPurge::bound`];
//!   `docs/decisions/0072-what-large-blocks-leave-dirty.md`);
//! - in exchange for clean pages that a large block takes because no dirty run is long enough: so they do not add to the program's peak
//!   (`docs/decisions/0050-the-peak-of-real-programs.md`); beyond the budget only while more is in use than ever
//!   (`docs/decisions/0065-memory-in-exchange-for-growth.md`).

use freestone_base::units::{Millis, Moment, Pages};

/// What is purged early has been dirty for the decay time divided by this.
const SHARE: u32 = 50;

/// Decay times in a period.
const PERIOD: u32 = 8;

/// Pages that may be purged early in a period: 16 MiB.
const BUDGET: Pages = Pages(256);

/// When a large block is freed, this much may be dirty in any case: 1 MiB, for the next blocks.
const KEPT_LEAST: Pages = Pages(16);

/// Or one part in this many of what is in use, if that is more.
const KEPT_SHARE: u32 = 32;

/// What was purged early in the present period.
#[derive(Clone, Copy, Debug)]
pub(in crate::page) struct EarlyPurge {
    began: Moment,
    spent: Pages,
}

impl EarlyPurge {
    /// Nothing was.
    pub(in crate::page) const NONE: Self = Self { began: Moment(0), spent: Pages::ZERO };

    /// How long a run of `pages` may stay dirty; `None` without a bound. `decay` is the decay time.
    pub(in crate::page) fn decay(&mut self, pages: Pages, now: Moment, decay: Option<Millis>) -> Option<Millis> {
        let decay = decay?;
        Some(if self.left(now, decay) >= pages { Millis(decay.0 / SHARE) } else { decay })
    }

    /// Dirty pages that may stay when a large block is freed, while `in_use` pages are in use; [`Pages::MAX`] once the budget is spent.
    pub(in crate::page) fn bound(&mut self, in_use: Pages, now: Moment, decay: Option<Millis>) -> Pages {
        let has_budget = decay.is_some_and(|decay| self.left(now, decay) > Pages::ZERO);
        if has_budget { KEPT_LEAST.max(Pages(in_use.0 / KEPT_SHARE)) } else { Pages::MAX }
    }

    /// Pages that may be purged early from now on.
    fn left(&mut self, now: Moment, decay: Millis) -> Pages {
        if now.age_of(self.began) >= Millis(decay.0.saturating_mul(PERIOD)) {
            *self = Self { began: now, spent: Pages::ZERO };
        }
        BUDGET.saturating_sub(self.spent)
    }

    /// Takes up to `pages` from the budget, for dirty pages that go back at once. Returns how many.
    pub(in crate::page) fn spend(&mut self, pages: Pages, now: Moment, decay: Option<Millis>) -> Pages {
        let pages = decay.map_or(Pages::ZERO, |decay| pages.min(self.left(now, decay)));
        self.spent += pages;
        pages
    }

    /// Counts pages that are purged `age` after they became dirty.
    pub(in crate::page) fn note(&mut self, pages: Pages, age: Millis, decay: Option<Millis>) {
        if decay.is_some_and(|decay| age < decay) {
            self.spent += pages;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECAY: Option<Millis> = Some(Millis(1000));

    #[test]
    fn runs_are_purged_early_until_the_budget_of_the_period_is_spent() {
        let mut early = EarlyPurge::NONE;
        let now = Moment(100_000);
        assert_eq!(early.decay(Pages(257), now, DECAY), DECAY, "a run longer than the budget");
        assert_eq!(early.decay(Pages(200), now, DECAY), Some(Millis(20)));
        early.note(Pages(200), Millis(20), DECAY);
        assert_eq!(early.decay(Pages(57), now, DECAY), DECAY);
        assert_eq!(early.decay(Pages(56), now, DECAY), Some(Millis(20)));
        assert_eq!(early.decay(Pages(57), Moment(107_999), DECAY), DECAY);
        assert_eq!(early.decay(Pages(57), Moment(108_000), DECAY), Some(Millis(20)), "a new period");
    }

    #[test]
    fn what_was_dirty_for_the_decay_time_costs_no_budget() {
        let mut early = EarlyPurge::NONE;
        early.note(Pages(256), Millis(1000), DECAY);
        assert_eq!(early.decay(Pages(256), Moment(1), DECAY), Some(Millis(20)));
    }

    #[test]
    fn what_goes_back_at_once_is_taken_from_the_same_budget() {
        let mut early = EarlyPurge::NONE;
        let now = Moment(100_000);
        assert_eq!(early.spend(Pages(200), now, DECAY), Pages(200));
        assert_eq!(early.decay(Pages(57), now, DECAY), DECAY);
        assert_eq!(early.spend(Pages(100), now, DECAY), Pages(56), "what is left");
        assert_eq!(early.spend(Pages(1), now, DECAY), Pages::ZERO);
        assert_eq!(early.spend(Pages(1), Moment(99_999), DECAY), Pages::ZERO, "a thread that read the clock before");
        assert_eq!(early.spend(Pages(1), Moment(108_000), DECAY), Pages(1), "a new period");
    }

    #[test]
    fn a_mebibyte_or_one_page_in_32_of_what_is_in_use_may_stay_while_there_is_budget() {
        let mut early = EarlyPurge::NONE;
        let now = Moment(100_000);
        let kept = [0, 512, 543, 544, 6400].map(|in_use| early.bound(Pages(in_use), now, DECAY).0);
        assert_eq!(kept, [16, 16, 16, 17, 200]);
        early.note(Pages(255), Millis(20), DECAY);
        assert_eq!(early.bound(Pages(1), now, DECAY), Pages(16));
        assert_eq!(early.spend(Pages(1), now, DECAY), Pages(1));
        assert_eq!(early.bound(Pages(1), now, DECAY), Pages::MAX, "the budget is spent");
        assert_eq!(early.bound(Pages(1), Moment(108_000), DECAY), Pages(16), "a new period");
    }

    #[test]
    fn without_a_decay_time_nothing_is_purged_early() {
        let mut early = EarlyPurge::NONE;
        assert_eq!(early.bound(Pages(1), Moment(100), None), Pages::MAX);
        assert_eq!(early.decay(Pages(1), Moment(100), None), None);
        assert_eq!(early.spend(Pages(1), Moment(100), None), Pages::ZERO);
    }
}
