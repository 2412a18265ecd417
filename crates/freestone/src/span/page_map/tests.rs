use super::*;

#[test]
fn only_the_owner_recognises_its_pages() {
    for class in 0..N_CLASSES {
        let owner = Owner::FIRST.next();
        let entry = Entry::small(owner, class as SizeClass);
        assert_eq!(entry.class_if_owned(owner.tag()), Some(class));
        for other in [Owner::FIRST, Owner::ABANDONED, Owner::NOBODY, owner.next()] {
            assert_eq!(entry.class_if_owned(other.tag()), None);
        }
        assert_eq!((entry.class(), entry.owner()), (Some(class), owner));
    }
}

#[test]
fn nobody_recognises_large_blocks_or_foreign_pages() {
    for entry in [Entry::NONE, Entry::LARGE, Entry::CACHED] {
        assert_eq!(entry.class(), None);
        for owner in [Owner::FIRST, Owner::ABANDONED, Owner::NOBODY, Owner::FIRST.next()] {
            assert_eq!(entry.class_if_owned(owner.tag()), None);
        }
    }
}

#[test]
fn generations_wrap_within_their_half_without_touching_the_reserved_ones() {
    let is_thread = |owner: Owner| owner.0 >= 2 && !owner.is_explicit() && owner != Owner::NOBODY;
    for (first, is_of_its_half) in
        [(Owner::FIRST, &is_thread as &dyn Fn(Owner) -> bool), (Owner::FIRST_EXPLICIT, &Owner::is_explicit)]
    {
        let (mut owner, mut n) = (first, 0u32);
        loop {
            assert!(is_of_its_half(owner), "{owner:?}");
            (owner, n) = (owner.next(), n + 1);
            if owner == first {
                break;
            }
        }
        assert!(n >= (1 << 23) - 2, "only {n} generations");
    }
    assert!(!Owner::ABANDONED.is_explicit() && !Owner::NOBODY.is_explicit());
}
