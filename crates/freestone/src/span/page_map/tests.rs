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
    for entry in [Entry::NONE, Entry::LARGE, Entry::KEPT] {
        assert_eq!(entry.class(), None);
        for owner in [Owner::FIRST, Owner::ABANDONED, Owner::NOBODY, Owner::FIRST.next()] {
            assert_eq!(entry.class_if_owned(owner.tag()), None);
        }
    }
}

#[test]
fn generations_wrap_without_touching_the_reserved_ones() {
    let last = Owner(Owner::NOBODY.0 - 1);
    assert_eq!(last.next(), Owner::FIRST);
}
