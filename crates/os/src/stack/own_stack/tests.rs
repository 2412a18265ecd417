extern crate std;
use super::*;
use core::hint::black_box;

/// An address in the calling thread's stack, with `bytes` of it below the caller's.
#[inline(never)]
fn here() -> usize {
    let local = black_box(0usize);
    (&raw const local).expose_provenance()
}

fn known_bytes(own: &OwnStack, at: usize) -> usize {
    let top = own.top.get();
    own.reader(at);
    if own.top.get() == 0 { 0 } else { own.top.get().max(top) - at }
}

#[test]
fn a_threads_stack_is_known_up_to_its_end() {
    let (own, at) = (OwnStack::new(), here());
    assert!(known_bytes(&own, at) > 0, "{own:x?}");
    assert!(own.low.get() <= at && at < own.top.get());
    assert_eq!(own.n_failed.get(), 0);
}

#[test]
fn memory_beside_the_stack_is_not_taken_for_it_and_soon_nobody_asks() {
    let (own, elsewhere) = (OwnStack::new(), std::boxed::Box::new(0usize));
    for n in 1..20 {
        assert_eq!(own.look((&raw const *elsewhere).expose_provenance()), 0);
        assert_eq!(own.n_failed.get(), n.min(TRIES));
    }
    assert_eq!(own.look(here()), 0);
    own.forget();
    assert_ne!(own.look(here()), 0);
}

#[test]
fn another_threads_stack_is_not_known() {
    let (own, at) = (OwnStack::new(), here());
    own.reader(at);
    let (low, top) = (own.low.get(), own.top.get());
    let others = std::thread::spawn(move || {
        let (own, at) = (OwnStack::new(), here());
        own.reader(at);
        assert!(at < low || at >= top);
        (own.low.get(), own.top.get())
    });
    let others = others.join().unwrap();
    assert!(others.1 <= low || others.0 >= top, "{others:x?} {low:x} {top:x}");
}
