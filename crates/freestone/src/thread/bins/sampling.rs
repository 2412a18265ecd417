//! What the bins know of sampling: the countdown to the next sample, and how many allocations of each class are to be one.

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

    /// Tells the countdown of the blocks of a class that were handed out. `false`, and nothing is changed, if that ends it, if an allocation is due, or if
    /// blocks are set aside.
    #[inline]
    pub(crate) fn counts_down(&self, class: usize) -> bool {
        let (state, allocs) = (&self.classes[class], self.allocs(class));
        let units = allocs.wrapping_sub(state.counted_down.get());
        let is_quiet = state.n_due.get() == 0 && state.n_aside.get() == 0;
        let counts = is_quiet && self.countdown.skip(units);
        if counts {
            state.counted_down.set(allocs);
        }
        counts
    }

    /// Notes that the next `n` allocations of a class that take a slow path are sampled, after those that were noted before.
    pub(crate) fn add_due(&self, class: usize, n: u32) {
        let n_due = &self.classes[class].n_due;
        n_due.set(n_due.get().saturating_add(n));
    }

    /// Whether an allocation was noted.
    pub(crate) fn is_due(&self, class: usize) -> bool {
        self.classes[class].n_due.get() > 0
    }

    /// Takes back one allocation that was noted.
    pub(crate) fn take_due(&self, class: usize) {
        let n_due = &self.classes[class].n_due;
        n_due.set(n_due.get().saturating_sub(1));
    }
}
