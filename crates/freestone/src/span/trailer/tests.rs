use super::*;

const WORD: u32 = 0x89ab_cdef;

#[test]
fn what_is_written_into_a_trailer_is_read_from_it() {
    let families = [Family::C, Family::Rust, Family::New, Family::NewArray].map(State::Live);
    for state in [State::Fresh, State::Freed].into_iter().chain(families) {
        for (size, align_log2) in (0..1 << 15).step_by(7).flat_map(|size| [0, 4, 15].map(|align| (size, align))) {
            let trailer = Trailer { state, size, align_log2 };
            let stored = trailer.encode(WORD);
            assert_eq!(Trailer::decode(stored, WORD), Some(trailer));
            let fields = Fields::decode(stored, WORD).expect("it is a trailer");
            assert_eq!((fields.size(), fields.align_log2()), (size, align_log2));
            assert_eq!((fields.is_fresh(), fields.is_freed()), (state == State::Fresh, state == State::Freed));
            assert_eq!(fields.family().map(State::Live), matches!(state, State::Live(_)).then_some(state));
            assert_eq!(fields, Fields::of(trailer));
            let is_free = state == State::Freed || trailer == Trailer::FRESH;
            assert_eq!(Fields::decode_free(stored, WORD), is_free.then_some(fields));
            let freed = Trailer { state: State::Freed, ..trailer };
            assert_eq!(Trailer::decode(fields.encode_freed(WORD), WORD), Some(freed));
            for family in 0..8 {
                let is_of_it = state == State::Live(Family::C) && family == Family::C as u32
                    || state == State::Live(Family::Rust) && family == Family::Rust as u32
                    || state == State::Live(Family::New) && family == Family::New as u32
                    || state == State::Live(Family::NewArray) && family == Family::NewArray as u32;
                assert_eq!(Fields::decode_live(stored, WORD, family).is_some(), is_of_it, "{state:?}, {family}");
            }
        }
    }
}

#[test]
fn few_of_the_numbers_that_are_no_trailer_pass_for_one() {
    let numbers = || (0..1 << 16).map(|n: u32| n.wrapping_mul(0x9E37_79B9));
    let passed = numbers().filter(|&stored| Trailer::decode(stored, WORD).is_some()).count();
    // Ten bits must be zero, and the state must be one of six of eight.
    assert!(passed < 100, "{passed} of 65536");
    let live = numbers().filter(|&stored| Fields::decode_live(stored, WORD, Family::C as u32).is_some()).count();
    assert!(live < 20, "{live} of 65536");
}

#[test]
fn a_trailer_whose_first_byte_is_wrong_is_none() {
    for state in [State::Fresh, State::Freed, State::Live(Family::C)] {
        for size in (0..32_000).step_by(97) {
            let stored = Trailer { state, size, align_log2: 4 }.encode(WORD);
            let passes = |stored| {
                Trailer::decode(stored, WORD).is_some()
                    || Fields::decode_free(stored, WORD).is_some()
                    || Fields::decode_live(stored, WORD, Family::C as u32).is_some()
            };
            let passed = (1..256).filter(|wrong| passes(stored ^ wrong)).count();
            assert_eq!(passed, 0, "{state:?} of {size} bytes");
        }
    }
}
