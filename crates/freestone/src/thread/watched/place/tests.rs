use super::*;
use core::ptr;

#[test]
fn a_place_has_the_start_and_the_class_that_it_was_made_of() {
    for class in [0, 1, N_CLASSES - 1] {
        let start: *mut u8 = ptr::without_provenance_mut((1 << 31) - 16);
        let place = Place::new(start, Some(class));
        assert_eq!((place.start(), place.class()), (start, class));
        assert!(Place::new(start, None).class() >= N_CLASSES && Place::new(start, None).start() == start);
    }
}
