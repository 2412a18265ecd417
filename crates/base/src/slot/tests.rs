#![allow(unsafe_code)]
extern crate std;
use super::*;

#[cfg(not(loom))]
#[test]
fn what_is_put_is_taken_once_and_a_closed_slot_refuses() {
    let slot = Slot::closed();
    assert!(slot.is_closed() && !slot.put(7) && slot.take().is_none() && slot.close().is_none());
    slot.open(7);
    assert!(!slot.is_closed());
    assert!(!slot.put(8), "a slot holds one number");
    assert_eq!((slot.take(), slot.take()), (Some(7), None));
    assert!(slot.put(u32::MAX) && slot.peek() == u32::MAX);
    assert_eq!(slot.close(), Some(Content::Number(u32::MAX)));
    assert!(slot.is_closed() && !slot.put(7));
    slot.open(9);
    assert_eq!((slot.take(), slot.close(), slot.close()), (Some(9), Some(Content::Empty), None));
}

#[cfg(not(loom))]
#[test]
fn only_what_was_not_used_between_two_looks_is_idle() {
    let slot = Slot::closed();
    assert_eq!(slot.close_if_idle(), None);
    assert!(slot.is_closed() && !slot.put(3), "a look opens nothing");
    slot.open(3);
    assert_eq!(slot.close_if_idle(), None);
    assert_eq!(slot.take(), Some(3));
    assert_eq!(slot.close_if_idle(), None, "it was taken from since");
    assert!(slot.put(3));
    assert_eq!(slot.close_if_idle(), None, "it was put into since");
    assert_eq!(slot.close_if_idle(), Some(Content::Number(3)));
    slot.open(4);
    assert_eq!((slot.take(), slot.close_if_idle()), (Some(4), None));
    assert_eq!(slot.close_if_idle(), Some(Content::Empty));
}

/// The object behind the number is a loom cell. The thread that has the number writes to it: two threads that have it at once, or one after the other
/// without an order between them, are a data race.
#[cfg(loom)]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use std::sync::Arc;

    struct Shared {
        slot: Slot,
        named: UnsafeCell<u64>,
    }

    impl Shared {
        fn closed() -> Arc<Self> {
            Arc::new(Self { slot: Slot::closed(), named: UnsafeCell::new(0) })
        }

        fn write(&self) {
            // SAFETY: the caller has the number; loom checks that no other thread has it.
            self.named.with_mut(|named| unsafe { *named += 1 });
        }

        /// Takes the number, uses it and puts it back. Returns whether it was there, and whether the keeper still has it.
        fn keep(&self) -> (bool, bool) {
            let took = self.slot.take() == Some(1);
            if took {
                self.write();
            }
            (took, took && !self.slot.put(1))
        }
    }

    /// The keeper takes and puts while a closer looks twice and closes: exactly one of them has the number at the end.
    #[test]
    fn either_the_keeper_or_the_closer_has_a_number() {
        loom::model(|| {
            let shared = Shared::closed();
            shared.slot.open(1);
            let other = Arc::clone(&shared);
            let keeper = loom::thread::spawn(move || other.keep());
            let closed = [shared.slot.close_if_idle(), shared.slot.close_if_idle(), shared.slot.close()];
            let n_closed = closed.iter().filter(|had| **had == Some(Content::Number(1))).count();
            if n_closed > 0 {
                shared.write();
            }
            let (took, kept) = keeper.join().unwrap();
            assert_eq!(closed[0], None, "it was not checked before");
            assert_eq!(n_closed + usize::from(kept), 1);
            // SAFETY: the keeper's thread was joined.
            assert_eq!(shared.named.with(|named| unsafe { *named }), u64::from(took) + n_closed as u64);
            assert!(shared.slot.is_closed());
        });
    }

    /// A closer opens the slot with a number whose object it has written to: the keeper that takes the number sees what was written.
    #[test]
    fn what_a_slot_is_opened_with_passes_to_the_keeper() {
        loom::model(|| {
            let shared = Shared::closed();
            let other = Arc::clone(&shared);
            let keeper = loom::thread::spawn(move || other.keep());
            shared.write();
            shared.slot.open(1);
            let (took, kept) = keeper.join().unwrap();
            assert!(!kept && shared.slot.close() == Some(Content::Number(1)));
            // SAFETY: the keeper's thread was joined.
            assert_eq!(shared.named.with(|named| unsafe { *named }), 1 + u64::from(took));
        });
    }

    /// The keeper puts, and the closer closes: it may write to what it gets. The keeper is the thread that loom runs first; the other way round, no
    /// schedule that loom tries has the put before the first of two looks.
    fn closed_after_a_put(close: fn(&Slot) -> Option<Content>) {
        let shared = Shared::closed();
        shared.slot.open(1);
        assert_eq!(shared.slot.take(), Some(1));
        let other = Arc::clone(&shared);
        let closer = loom::thread::spawn(move || {
            let had = close(&other.slot);
            if had == Some(Content::Number(1)) {
                other.write();
            }
            had
        });
        shared.write();
        let put = shared.slot.put(1);
        let had = closer.join().unwrap();
        assert_eq!(put, had != Some(Content::Empty), "{had:?}");
    }

    #[test]
    fn a_closer_sees_the_object_behind_the_number_that_was_put() {
        loom::model(|| closed_after_a_put(Slot::close));
    }

    #[test]
    fn a_closer_of_idle_slots_sees_the_object_behind_the_number_that_was_put() {
        loom::model(|| closed_after_a_put(|slot| slot.close_if_idle().or_else(|| slot.close_if_idle())));
    }
}
