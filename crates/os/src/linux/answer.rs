//! The kernel's answer to a question that is put once.

use freestone_base::sync::{AtomicU8, Ordering};

/// Yes, no, or not known yet. Threads that ask at the same moment get the same answer.
pub(crate) struct Answer(AtomicU8);

impl Answer {
    const UNKNOWN: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;

    /// Not known yet.
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(Self::UNKNOWN))
    }

    /// The answer, if it is known.
    pub(crate) fn get(&self) -> Option<bool> {
        match self.0.load(Ordering::Relaxed) {
            Self::UNKNOWN => None,
            answer => Some(answer == Self::YES),
        }
    }

    /// Notes the answer.
    pub(crate) fn set(&self, answer: bool) {
        self.0.store(if answer { Self::YES } else { Self::NO }, Ordering::Relaxed);
    }

    /// Asks again.
    #[cfg(test)]
    pub(crate) fn forget(&self) {
        self.0.store(Self::UNKNOWN, Ordering::Relaxed);
    }
}
