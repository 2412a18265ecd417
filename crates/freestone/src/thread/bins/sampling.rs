//! What the bins know of sampling: the countdown to the next sample, and the classes whose next allocation is one.

use super::Bins;
use crate::thread::countdown::Countdown;

impl Bins {
    /// The countdown to the next sample, in allocations of all classes.
    pub(crate) fn countdown(&self) -> &Countdown {
        &self.countdown
    }

    /// Blocks of a class that were handed out since the countdown was told of them last.
    pub(crate) fn uncounted(&self, class: usize) -> u64 {
        self.allocs(class).saturating_sub(self.classes[class].counted_down.get())
    }

    /// As [`Bins::uncounted`]. From now on the countdown knows of them, and of `more`.
    pub(crate) fn take_uncounted(&self, class: usize, more: u64) -> u64 {
        let n = self.uncounted(class);
        self.classes[class].counted_down.set(self.allocs(class) + more);
        n
    }

    /// Tells the countdown of the blocks of a class that were handed out. `false`, and nothing is changed, if that may end it before the bin's
    /// room runs out again, if an allocation is due, or if blocks are set aside.
    #[inline]
    pub(crate) fn counts_down(&self, class: usize) -> bool {
        let (state, allocs) = (&self.classes[class], self.allocs(class));
        let units = allocs.wrapping_sub(state.counted_down.get());
        let is_quiet = !state.is_due.get() && state.n_aside.get() == 0;
        let counts = is_quiet && self.countdown.skip(units, u64::try_from(self.room(class)).unwrap_or(0));
        if counts {
            state.counted_down.set(allocs);
        }
        counts
    }

    /// Notes that the next allocation of a class that takes a slow path is sampled.
    pub(crate) fn set_due(&self, class: usize) {
        self.classes[class].is_due.set(true);
    }

    /// Whether that was noted.
    pub(crate) fn is_due(&self, class: usize) -> bool {
        self.classes[class].is_due.get()
    }

    /// Returns whether that was noted, and takes it back.
    pub(crate) fn take_due(&self, class: usize) -> bool {
        self.classes[class].is_due.replace(false)
    }
}
