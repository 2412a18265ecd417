//! Churn: whether large blocks come and go, and how much dirty memory may stay for them.
//!
//! A program that frees and allocates large blocks in turn pays for purging with page faults (a block of 32 MiB: 16 ms, measured). When
//! memory beyond the bound was purged and is needed again within the decay time, the purge was wasted, and the program
//! *churns*. As long as it does, memory in use and dirty memory together may be 11/10 of the recent peak of memory in use; but dirty memory
//! never exceeds eight times what is in use now, so that a program that goes idle keeps little. Churn ends when for a decay time no
//! large block took dirty memory, and no purge was wasted. `docs/decisions/0006-large-blocks-that-come-and-go.md` and
//! `docs/decisions/0061-large-blocks-in-exchange.md` have the measurements.

use freestone_base::units::{Millis, Moment, Pages};

/// Dirty memory of a program that churns is at most this many times what is in use now.
const DIRTY_FACTOR: u64 = 8;

/// Memory in use and dirty memory together may be this multiple of the recent peak of memory in use: 11/10.
const PEAK_SHARE: (u64, u64) = (11, 10);

/// Or this much more than the recent peak, if that is more: 16 MiB.
const PEAK_MARGIN: u64 = 256;

/// When large blocks last reused dirty memory, and the recent peak of memory in use.
#[derive(Clone, Copy, Debug)]
pub(in crate::page) struct Churn {
    /// When dirty memory beyond the bound was last purged.
    purged: Option<Moment>,
    /// When a large block last took dirty memory, or would have if it had not been purged; `None` if the program does not churn.
    useful: Option<Moment>,
    /// When the present period began. A period lasts a decay time.
    period_start: Moment,
    /// The most pages in use in this period, and in the one before.
    peaks: [Pages; 2],
}

impl Churn {
    /// No large block has been seen.
    pub(in crate::page) const NONE: Self =
        Self { purged: None, useful: None, period_start: Moment(0), peaks: [Pages::ZERO; 2] };

    /// Notes that dirty memory beyond the bound is purged.
    pub(in crate::page) fn note_purge_for_amount(&mut self, now: Moment) {
        self.purged = Some(now);
    }

    /// Whether dirty memory beyond the bound was ever purged: since then this policy decides how much of it may stay.
    pub(in crate::page) fn has_begun(&self) -> bool {
        self.purged.is_some()
    }

    /// Notes that a large block takes dirty memory. The clock is read only if that matters.
    pub(in crate::page) fn note_reuse(&mut self, decay: Option<Millis>, clock: impl FnOnce() -> Moment) {
        self.note_use(self.useful, decay, clock);
    }

    /// Notes that a large block takes memory that has to be faulted in. The clock is read only if that matters.
    pub(in crate::page) fn note_fresh(&mut self, decay: Option<Millis>, clock: impl FnOnce() -> Moment) {
        self.note_use(self.purged, decay, clock);
    }

    /// Notes a use of dirty memory, actual or missed, if `last` is less than a decay time ago.
    fn note_use(&mut self, last: Option<Moment>, decay: Option<Millis>, clock: impl FnOnce() -> Moment) {
        let (Some(last), Some(decay)) = (last, decay) else { return };
        let now = clock();
        if now.age_of(last) < decay {
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
        if now.age_of(self.period_start) >= decay {
            self.period_start = now;
            self.peaks = [in_use, self.peaks[0]];
        }
    }

    /// Dirty pages that may stay, whatever their age: `bound`, or more while the program churns.
    pub(in crate::page) fn raised(&self, bound: Pages, in_use: Pages) -> Pages {
        if self.useful.is_none() {
            return bound;
        }
        let (in_use, recent) = (u64::from(in_use.0), u64::from(self.peaks[0].max(self.peaks[1]).0));
        let total = (recent * PEAK_SHARE.0 / PEAK_SHARE.1).max(recent + PEAK_MARGIN);
        let raised = total.saturating_sub(in_use).min(DIRTY_FACTOR * in_use);
        bound.max(Pages::saturating_from(raised))
    }
}

#[cfg(test)]
mod tests;
