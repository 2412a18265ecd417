use super::*;

#[test]
fn only_the_owner_recognises_its_pages() {
    for class in 0..N_CLASSES {
        let owner = Generation::FIRST.next();
        let entry = Entry::small(owner, class as SizeClass);
        assert_eq!(entry.class_if_owned(owner.tag()), Some(class));
        for other in [Generation::FIRST, Generation::ABANDONED, Generation::NONE, owner.next()] {
            assert_eq!(entry.class_if_owned(other.tag()), None);
        }
        assert_eq!((entry.class(), entry.generation()), (Some(class), owner));
    }
}

#[test]
fn no_heap_recognises_large_blocks_or_foreign_pages_as_its_own() {
    for entry in [Entry::NONE, Entry::LARGE, Entry::CACHED] {
        assert_eq!(entry.class(), None);
        for owner in [Generation::FIRST, Generation::ABANDONED, Generation::NONE, Generation::FIRST.next()] {
            assert_eq!(entry.class_if_owned(owner.tag()), None);
        }
    }
}

#[test]
fn generations_wrap_within_their_half_without_touching_the_reserved_ones() {
    let is_thread = |owner: Generation| owner.0 >= 2 && !owner.is_explicit() && owner != Generation::NONE;
    for (first, is_of_its_half) in [
        (Generation::FIRST, &is_thread as &dyn Fn(Generation) -> bool),
        (Generation::FIRST_EXPLICIT, &Generation::is_explicit),
    ] {
        let (mut owner, mut n) = (first, 0u32);
        loop {
            assert!(is_of_its_half(owner), "{owner:?}");
            (owner, n) = (owner.next(), n + 1);
            if owner == first {
                break;
            }
            // Miri takes an hour for all.
            if cfg!(miri) && n == 100 {
                let skipped = (1 << 23) - 300;
                (owner, n) = (Generation(owner.0 + skipped), n + skipped);
            }
        }
        assert!(n >= (1 << 23) - 2, "only {n} generations");
    }
    assert!(!Generation::ABANDONED.is_explicit() && !Generation::NONE.is_explicit());
}

#[test]
fn an_entry_is_what_it_was_when_a_tag_is_subtracted_and_added() {
    for entry in [Entry::NONE, Entry::LARGE, Entry::CACHED, Entry::small(Generation::FIRST_EXPLICIT, 3)] {
        for tag in [Generation::FIRST.tag(), Generation::FIRST_EXPLICIT.tag(), Generation::NONE.tag()] {
            assert_eq!(entry.untagged(tag).tagged(tag), entry);
        }
    }
}

#[test]
fn the_owner_recognises_only_classes_below_the_bound() {
    let owner = Generation::FIRST.next();
    for class in 0..N_CLASSES {
        let entry = Entry::small(owner, class as SizeClass);
        for bound in [0, class, class + 1, N_CLASSES] {
            assert_eq!(entry.untagged(owner.tag()).class_below(bound).is_some(), class < bound);
        }
        assert_eq!(entry.class_if_owned(owner.tag()), Some(class));
        assert_eq!(entry.class_if_owned(Generation::FIRST.tag()), None);
    }
}
