//! Churn: whether memory comes and goes, and how much dirty memory may stay for it.
//!
//! A program needs no more dirty memory than makes up, with what is in use, the recent peak of memory in use, and a margin for what does not fit the blocks that come
//! next. In a small program that is less than the bound of the options. `docs/decisions/0092-memory-of-small-servers.md` has the measurements.
//!
//! A program that frees and allocates the same memory in turn pays for purging with page faults (a block of 32 MiB: 16 ms, measured). When
//! memory beyond the bound was purged and is needed again within the decay time, the purge was wasted. Two rules raise the bound then:
//!
//! - **Large blocks**: after one wasted purge the program *churns*. As long as it does, memory in use and dirty memory together may be 11/10 of the recent
//!   peak of memory in use; but dirty memory never exceeds eight times what is in use now, so that a program that goes idle keeps little. Churn ends when for
//!   a decay time no large block took dirty memory, and no purge was wasted. `docs/decisions/0006-large-blocks-that-come-and-go.md` and
//!   `docs/decisions/0061-large-blocks-in-exchange.md` have the measurements.
//! - **Bursts**, of blocks of any size: half of what was purged in vain may stay dirty, with what is in use at most the recent peak, until for a decay time
//!   no dirty memory was taken. So a program with two bursts keeps half of one, a program with many keeps nearly all, and twice a burst is all that is
//!   ever purged in vain. `docs/decisions/0081-memory-of-bursts-that-repeat.md` has the measurements.

use freestone_base::units::{Millis, Moment, Pages};

/// Dirty memory of a program that churns is at most this many times what is in use now.
const DIRTY_FACTOR: u64 = 8;

/// Memory in use and dirty memory together may be this multiple of the recent peak of memory in use: 11/10.
const PEAK_SHARE: (u64, u64) = (11, 10);

/// Or this much more than the recent peak, if that is more: 16 MiB, but no more than [`margin`].
const PEAK_MARGIN: Pages = Pages(256);

/// See [`margin`].
const MARGIN_PART: u32 = 4;

/// See [`margin`].
const MARGIN_LEAST: Pages = Pages(16);

/// Of what was purged in vain one part in this many may stay dirty.
const WASTED_SHARE: u32 = 2;

/// What was purged and is taken again, and the recent peak of memory in use.
#[derive(Clone, Copy, Debug)]
pub(in crate::page) struct Churn {
    /// When dirty memory beyond the bound was last purged.
    purged: Option<Moment>,
    /// Pages that were purged so in this period, and not taken again.
    gone: Pages,
    /// Pages that were purged so, and taken again within the decay time.
    wasted: Pages,
    /// When dirty memory was last taken while `wasted` counted, or memory that would have been dirty if it had not been purged.
    used: Moment,
    /// When a large block last took dirty memory, or would have if it had not been purged; `None` if the program does not churn.
    useful: Option<Moment>,
    /// When the present period began. A period lasts a decay time.
    period_start: Moment,
    /// The most pages in use in this period, and in the one before.
    peaks: [Pages; 2],
}

impl Churn {
    /// Nothing was purged.
    pub(in crate::page) const NONE: Self = Self {
        purged: None,
        gone: Pages::ZERO,
        wasted: Pages::ZERO,
        used: Moment(0),
        useful: None,
        period_start: Moment(0),
        peaks: [Pages::ZERO; 2],
    };

    /// Notes that dirty pages beyond the bound are purged.
    pub(in crate::page) fn note_purge_for_amount(&mut self, pages: Pages, now: Moment) {
        self.purged = Some(now);
        self.gone = self.gone.saturating_add(pages);
    }

    /// Whether dirty memory beyond the bound was ever purged: since then this policy decides how much of it may stay.
    pub(in crate::page) fn has_begun(&self) -> bool {
        self.purged.is_some()
    }

    /// Notes that a span, or a large block, takes dirty memory. The clock is read only if that matters.
    pub(in crate::page) fn note_reuse(&mut self, is_large: bool, clock: impl FnOnce() -> Moment) {
        if self.useful.is_none() && self.wasted == Pages::ZERO {
            return;
        }
        self.used = clock();
        if is_large && self.useful.is_some() {
            self.useful = Some(self.used);
        }
    }

    /// Notes that a span, or a large block, takes pages that have to be faulted in. The clock is read only if that matters.
    pub(in crate::page) fn note_fresh(
        &mut self,
        pages: Pages,
        is_large: bool,
        decay: Option<Millis>,
        clock: impl FnOnce() -> Moment,
    ) {
        let (Some(purged), Some(decay)) = (self.purged, decay) else { return };
        let now = clock();
        if now.age_of(purged) >= decay {
            self.gone = Pages::ZERO;
            return;
        }
        let wasted = self.gone.min(pages);
        self.gone -= wasted;
        self.wasted = self.wasted.saturating_add(wasted);
        self.used = now;
        if is_large {
            self.useful = Some(now);
        }
    }

    /// Raises the period's peak to the pages in use, if they are more.
    pub(in crate::page) fn note_in_use(&mut self, in_use: Pages) {
        self.peaks[0] = self.peaks[0].max(in_use);
    }

    /// Forgets churn, and peaks, that are too long ago.
    pub(in crate::page) fn pass_time(&mut self, now: Moment, decay: Option<Millis>, in_use: Pages) {
        let decay = decay.unwrap_or(Millis::MAX);
        self.useful = self.useful.filter(|&useful| now.age_of(useful) < decay);
        if now.age_of(self.used) >= decay {
            self.wasted = Pages::ZERO;
        }
        if now.age_of(self.period_start) >= decay {
            self.period_start = now;
            self.peaks = [in_use, self.peaks[0]];
            self.gone = Pages::ZERO;
        }
    }

    /// The recent peak of pages in use.
    fn recent_peak(&self) -> Pages {
        self.peaks[0].max(self.peaks[1])
    }

    /// Pages that the program has lately needed beside those in use, and a margin.
    pub(in crate::page) fn needed_beside(&self, in_use: Pages) -> Pages {
        let recent = self.recent_peak();
        (recent + margin(recent)).saturating_sub(in_use)
    }

    /// Dirty pages that may stay, whatever their age: `bound`, or more while memory comes and goes.
    pub(in crate::page) fn raised(&self, bound: Pages, in_use: Pages) -> Pages {
        let recent = self.recent_peak();
        let bursts = Pages(self.wasted.0 / WASTED_SHARE).min(recent.saturating_sub(in_use));
        let bound = bound.max(bursts);
        if self.useful.is_none() {
            return bound;
        }
        let with_margin = u64::from((recent + PEAK_MARGIN.min(margin(recent))).0);
        let (in_use, recent) = (u64::from(in_use.0), u64::from(recent.0));
        let total = (recent * PEAK_SHARE.0 / PEAK_SHARE.1).max(with_margin);
        let raised = total.saturating_sub(in_use).min(DIRTY_FACTOR * in_use);
        bound.max(Pages::saturating_from(raised))
    }
}

/// What does not fit the blocks that come next, and may stay beside a peak: a quarter of it, or 1 MiB if that is more.
fn margin(peak: Pages) -> Pages {
    Pages(peak.0 / MARGIN_PART).max(MARGIN_LEAST)
}

#[cfg(test)]
mod tests;
