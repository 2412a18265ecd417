//! Which slot is used next: first those that were never used, then the one that was freed longest ago.

use crate::guarded::geometry::N_SLOTS;

/// See the module header. Never-used slots are `n_used..`; freed ones wait in a ring.
#[derive(Debug)]
pub(crate) struct Vacant {
    ring: [u16; N_SLOTS],
    first: usize,
    len: usize,
    n_used: usize,
}

const _: () = assert!(N_SLOTS <= u16::MAX as usize);

impl Vacant {
    /// Every slot is vacant.
    pub(crate) const fn new() -> Self {
        Self { ring: [0; N_SLOTS], first: 0, len: 0, n_used: 0 }
    }

    /// Whether a slot is vacant.
    pub(crate) fn has(&self) -> bool {
        self.n_used < N_SLOTS || self.len > 0
    }

    /// Takes the next slot; `None` if none is vacant.
    pub(crate) fn take(&mut self) -> Option<usize> {
        if self.n_used < N_SLOTS {
            self.n_used += 1;
            return Some(self.n_used - 1);
        }
        if self.len == 0 {
            return None;
        }
        let index = self.ring[self.first];
        self.first = (self.first + 1) % N_SLOTS;
        self.len -= 1;
        Some(usize::from(index))
    }

    /// Puts a slot back, behind all others.
    pub(crate) fn put(&mut self, index: usize) {
        if self.len < N_SLOTS && index < N_SLOTS {
            self.ring[(self.first + self.len) % N_SLOTS] = index as u16;
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_were_never_used_come_first_then_the_one_freed_longest_ago() {
        let mut vacant = Vacant::new();
        assert_eq!([vacant.take(), vacant.take()], [Some(0), Some(1)]);
        vacant.put(0);
        assert!((2..N_SLOTS).all(|index| vacant.take() == Some(index)), "before the one that was freed");
        vacant.put(7);
        assert_eq!([vacant.take(), vacant.take(), vacant.take()], [Some(0), Some(7), None]);
    }

    #[test]
    fn the_ring_holds_all_slots_and_goes_round() {
        let mut vacant = Vacant::new();
        (0..N_SLOTS).for_each(|index| assert_eq!(vacant.take(), Some(index)));
        for _ in 0..3 {
            (0..N_SLOTS).for_each(|index| vacant.put(index));
            assert!((0..N_SLOTS).all(|index| vacant.take() == Some(index)));
            assert_eq!(vacant.take(), None);
        }
    }

    #[test]
    fn what_is_no_slot_or_one_too_many_is_not_put_back() {
        let mut vacant = Vacant::new();
        (0..N_SLOTS).for_each(|index| assert_eq!(vacant.take(), Some(index)));
        vacant.put(N_SLOTS);
        assert_eq!(vacant.take(), None);
        (0..N_SLOTS).for_each(|index| vacant.put(index));
        vacant.put(7);
        assert!((0..N_SLOTS).all(|index| vacant.take() == Some(index)));
        assert_eq!(vacant.take(), None);
    }
}
