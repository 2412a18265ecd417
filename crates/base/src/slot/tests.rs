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
    assert_eq!(slot.close(), Some(Had::Number(u32::MAX)));
    assert!(slot.is_closed() && !slot.put(7));
    slot.open(9);
    assert_eq!((slot.take(), slot.close(), slot.close()), (Some(9), Some(Had::Nothing), None));
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
    assert_eq!(slot.close_if_idle(), Some(Had::Number(3)));
    slot.open(4);
    assert_eq!((slot.take(), slot.close_if_idle()), (Some(4), None));
    assert_eq!(slot.close_if_idle(), Some(Had::Nothing));
}

/// The keeper takes and puts while another looks twice and closes: the number is somebody's, once, with what it names.
#[cfg(loom)]
#[test]
fn a_number_is_the_keepers_or_the_closers() {
    use std::sync::Arc;
    // Written by whoever has the number, with no order of its own: a write that the next holder does not see is lost.
    fn write(named: &AtomicU64) {
        named.store(named.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
    loom::model(|| {
        let (slot, named) = (Arc::new(Slot::closed()), Arc::new(AtomicU64::new(0)));
        slot.open(1);
        let keeper = {
            let (slot, named) = (Arc::clone(&slot), Arc::clone(&named));
            loom::thread::spawn(move || {
                let took = slot.take() == Some(1);
                if took {
                    write(&named);
                }
                (took, took && !slot.put(1))
            })
        };
        let closed = [slot.close_if_idle(), slot.close_if_idle(), slot.close()];
        let n_closed = closed.iter().filter(|had| **had == Some(Had::Number(1))).count();
        if n_closed > 0 {
            write(&named);
        }
        let (took, kept) = keeper.join().unwrap();
        assert_eq!(closed[0], None, "it was not looked at before");
        assert_eq!(n_closed + usize::from(kept), 1);
        assert_eq!(named.load(Ordering::Relaxed), u64::from(took) + n_closed as u64);
        assert!(slot.is_closed());
    });
}
