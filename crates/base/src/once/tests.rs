extern crate std;
use super::*;
use crate::lock::Spin;
use std::sync::Arc;

#[cfg(not(loom))]
#[test]
fn a_failed_attempt_may_be_made_again() {
    let once = Once::<Spin>::new();
    assert!(!once.call(|| false));
    assert!(!once.is_done());
    assert!(once.call(|| true));
    assert!(once.call(|| unreachable!("done already")));
    assert!(once.is_done());
}

#[cfg(loom)]
#[test]
fn two_threads_initialise_once_and_both_see_it() {
    use crate::sync::AtomicU32;
    loom::model(|| {
        let shared = Arc::new((Once::<Spin>::new(), AtomicU32::new(0)));
        let run = |shared: &(Once<Spin>, AtomicU32)| {
            shared.0.call(|| {
                shared.1.store(shared.1.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                true
            });
            assert_eq!(shared.1.load(Ordering::Relaxed), 1);
        };
        let other = Arc::clone(&shared);
        let thread = loom::thread::spawn(move || run(&other));
        run(&shared);
        thread.join().unwrap();
    });
}

#[cfg(not(loom))]
#[test]
fn threads_that_arrive_together_find_it_done() {
    let once = Arc::new(Once::<Spin>::new());
    let threads: std::vec::Vec<_> = (0..4)
        .map(|_| {
            let once = Arc::clone(&once);
            std::thread::spawn(move || assert!(once.call(|| true)))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
