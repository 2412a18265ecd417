#![allow(unsafe_code)]
extern crate std;
use super::*;
use crate::readable::Reader;
use crate::stack::rule::{Base, Rule, Saved};
use crate::stack::{OwnStack, Stack};
use core::hint::black_box;
use std::vec::Vec;

/// The words of a stack, which tests change.
type Memory = [AtomicUsize; 4];

/// Registers of a function whose frame begins with these words.
fn registers(words: &Memory, code: usize) -> Registers {
    Registers { code, stack: words.as_ptr().expose_provenance(), frame: 0x77, link: 0 }
}

#[inline(never)]
fn inner(depth: u32, own: &OwnStack) -> Stack<64> {
    if depth == 0 {
        let mut stack = Stack::EMPTY;
        let hash = stack.take_here(own);
        assert!(hash.is_none_or(|hash| hash == hash_of(stack.addresses())));
        return black_box(stack);
    }
    let stack = inner(black_box(depth - 1), own);
    black_box(stack)
}

#[test]
fn a_stack_that_is_known_is_what_was_found_at_every_depth() {
    let own = OwnStack::new();
    let found: Vec<_> = (0..100).map(|_| [0, 1, 5, 30].map(|depth| inner(depth, &own))).collect();
    for stacks in &found {
        for (stack, first) in stacks.iter().zip(&found[0]) {
            assert_eq!(stack.addresses()[2..], first.addresses()[2..]);
        }
    }
}

/// Keeps a stack of two callers of a function with these registers, whose frame pointers are saved below the return addresses.
fn keep(known: &KnownStacks, at: &Registers, by_frame: bool) {
    let rule = RuleWord::new(Some(Rule {
        base: if by_frame { Base::Frame } else { Base::Stack },
        offset: 16,
        return_address: Saved::At(-8),
        frame_pointer: Saved::At(-16),
    }));
    let mut new = (0..ONE_IN).find_map(|_| known.begin(at)).expect("one in so many is kept");
    let mut reader = Reader::new();
    let mut callee = *at;
    for _ in 0..2 {
        let caller = rule.caller(&callee, &mut reader).expect("the words can be read");
        new.note(rule, &callee, &caller);
        callee = caller;
    }
    new.finish(&[at.code, 1000, 1001], 64);
}

/// A stack of two callers: each frame has a frame pointer and a return address.
fn words() -> Memory {
    [0, 1001, 0, 1002].map(AtomicUsize::new)
}

fn look(known: &KnownStacks, at: &Registers, room: usize) -> Option<Vec<usize>> {
    let mut places = [0; 64];
    // SAFETY: a stack of the tests begins with words that the test owns.
    let words = unsafe { KnownWords::new(at.stack, size_of::<Memory>() / size_of::<usize>()) };
    let (n, hash) = known.get(at, words, room, &mut places[..room])?;
    assert_eq!(known.get(at, words, room, &mut []), Some((n, hash)));
    assert_eq!(hash, hash_of(&places[..n]));
    Some(places[..n].to_vec())
}

#[test]
fn a_stack_is_known_as_long_as_each_word_is_the_same() {
    let words = words();
    for by_frame in [false, true] {
        let known = KnownStacks::new();
        let at = Registers { frame: words.as_ptr().expose_provenance(), ..registers(&words, 500) };
        words[0].store(at.stack + 16, Ordering::Relaxed);
        assert_eq!(look(&known, &at, 64), None);
        keep(&known, &at, by_frame);
        let whole = Some([500, 1000, 1001].to_vec());
        assert_eq!(look(&known, &at, 64), whole);
        assert_eq!(look(&known, &at, 63), None, "another length");
        assert_eq!(look(&known, &Registers { code: 501, ..at }, 64), None);
        assert_eq!(look(&known, &Registers { stack: at.stack + 16, ..at }, 64), None);
        let other_frame = look(&known, &Registers { frame: 1, ..at }, 64);
        assert_eq!(other_frame, if by_frame { None } else { whole.clone() });
        for changed in [0, 1, 3] {
            let before = words[changed].fetch_add(8, Ordering::Relaxed);
            // A frame pointer that no rule goes by is part of no stack.
            let is_part = changed != 0 || by_frame;
            assert_eq!(look(&known, &at, 64), whole.clone().filter(|_| !is_part), "{changed} {by_frame}");
            words[changed].store(before, Ordering::Relaxed);
        }
        assert_eq!(look(&known, &at, 64), whole);
    }
}

#[test]
fn a_stack_of_words_that_are_not_all_known_to_be_readable_is_not_known() {
    let words = words();
    let (known, at) = (KnownStacks::new(), registers(&words, 500));
    keep(&known, &at, false);
    assert!(look(&known, &at, 64).is_some());
    for n in 0..4 {
        // SAFETY: they are the first of the test's words.
        let readable = unsafe { KnownWords::new(at.stack, n) };
        assert_eq!(known.get(&at, readable, 64, &mut []), None, "{n}");
    }
}

#[test]
fn a_stack_with_a_word_that_is_not_above_its_stack_pointer_is_not_kept() {
    let words = words();
    let known = KnownStacks::new();
    let at = Registers { stack: words[1].as_ptr().expose_provenance(), ..registers(&words, 500) };
    let mut new = (0..ONE_IN).find_map(|_| known.begin(&at)).expect("one in so many is kept");
    let rule = RuleWord::new(Some(Rule {
        base: Base::Stack,
        offset: 0,
        return_address: Saved::At(-8),
        frame_pointer: Saved::Same,
    }));
    let caller = rule.caller(&at, &mut Reader::new()).expect("the word can be read");
    new.note(rule, &at, &caller);
    new.finish(&[500], 64);
    let entries = known.entries.get().expect("they were mapped");
    assert!(entries.iter().all(|entry| entry[STACK].load(Ordering::Relaxed) == 0));
}

#[test]
fn a_stack_that_depends_on_more_or_is_being_written_is_not_known() {
    let words = words();
    let (known, at) = (KnownStacks::new(), registers(&words, 500));
    keep(&known, &at, false);
    for _ in 0..WAYS * ONE_IN {
        if let Some(mut new) = known.begin(&at) {
            new.give_up();
            assert!(known.begin(&at).is_none());
            new.finish(&[500], 64);
        }
    }
    assert_eq!(look(&known, &at, 64), None, "each entry was written");
    keep(&known, &at, false);
    let held: Vec<_> = (0..WAYS * ONE_IN).filter_map(|_| known.begin(&at)).collect();
    assert_eq!(held.len(), WAYS);
    assert_eq!(look(&known, &at, 64), None);
    assert!((0..ONE_IN).all(|_| known.begin(&at).is_none()), "a writer is waited for by nobody");
}

#[test]
fn a_stack_that_ends_at_a_return_address_of_no_code_depends_on_it() {
    let words = words();
    words[3].store(0, Ordering::Relaxed);
    let (known, at) = (KnownStacks::new(), registers(&words, 500));
    let rule = RuleWord::new(Some(Rule {
        base: Base::Stack,
        offset: 16,
        return_address: Saved::At(-8),
        frame_pointer: Saved::Same,
    }));
    let mut new = (0..ONE_IN).find_map(|_| known.begin(&at)).expect("one in so many is kept");
    let caller = rule.caller(&at, &mut Reader::new()).expect("it can be read");
    new.note(rule, &at, &caller);
    new.note(rule, &caller, &rule.caller(&caller, &mut Reader::new()).expect("it can be read"));
    new.finish(&[500, 1000], 64);
    assert_eq!(look(&known, &at, 64), Some([500, 1000].to_vec()));
    words[3].store(77, Ordering::Relaxed);
    assert_eq!(look(&known, &at, 64), None);
}
