use super::*;

const WORD: u32 = 0x89ab_cdef;

fn encode(trailer: Trailer) -> u32 {
    Fields::of(trailer).encode(WORD)
}

fn decode(stored: u32) -> Option<Trailer> {
    Fields::decode(stored, WORD)?.trailer()
}

#[test]
fn what_is_written_into_a_trailer_is_read_from_it() {
    let families = [Family::C, Family::Rust, Family::New, Family::NewArray].map(State::Live);
    for state in [State::Fresh, State::Freed].into_iter().chain(families) {
        for (size, align_log2) in (0..1 << 15)
            .step_by(if cfg!(miri) { 1009 } else { 7 })
            .flat_map(|size| [0, 4, 15].map(|align| (size, align)))
        {
            let trailer = Trailer { state, size, align_log2 };
            let stored = encode(trailer);
            assert_eq!(decode(stored), Some(trailer));
            let fields = Fields::decode(stored, WORD).expect("it is a trailer");
            assert_eq!((fields.size(), fields.align_log2()), (size, align_log2));
            assert_eq!((fields.is_fresh(), fields.is_freed()), (state == State::Fresh, state == State::Freed));
            assert_eq!(fields.family().map(State::Live), matches!(state, State::Live(_)).then_some(state));
            assert_eq!(fields, Fields::of(trailer));
            let is_free = state == State::Freed || trailer == Trailer::FRESH;
            assert_eq!(Fields::decode_free(stored, WORD), is_free.then_some(fields));
            let freed = Trailer { state: State::Freed, ..trailer };
            assert_eq!(decode(fields.encode_freed(fields.state(), WORD)), Some(freed));
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
fn who_knows_the_secret_reads_from_a_block_of_another_process_whether_it_is_free() {
    let (secret, start) = ([0x0123_4567_89ab_cdef, 0x8edc_ba98_7654_3211], 0x7f12_3400_0040);
    let word = Secret::of(secret).words(start).trailer;
    for (state, is_free) in [(State::Fresh, true), (State::Freed, true), (State::Live(Family::C), false)] {
        let mut block = [0; 64];
        let trailer = Fields::of(Trailer { state, size: 0, align_log2: 0 }).encode(word);
        block[60..].copy_from_slice(&trailer.to_ne_bytes());
        assert_eq!(is_free_by_trailer(secret, start as u64, &block), is_free, "{state:?}");
        assert!(!is_free_by_trailer(secret, start as u64 + 64, &block), "of another block");
    }
    assert!(!is_free_by_trailer(secret, start as u64, &[0; 2]));
}

#[test]
fn few_of_the_numbers_that_are_no_trailer_pass_for_one() {
    let numbers = || (0..1 << 16).step_by(if cfg!(miri) { 257 } else { 1 }).map(|n: u32| n.wrapping_mul(0x9E37_79B9));
    let passed = numbers().filter(|&stored| decode(stored).is_some()).count();
    // Ten bits must be zero, and the state must be one of six of eight.
    assert!(passed < 100, "{passed} of 65536");
    let live = numbers().filter(|&stored| Fields::decode_live(stored, WORD, Family::C as u32).is_some()).count();
    assert!(live < 20, "{live} of 65536");
}

#[test]
fn a_trailer_whose_first_byte_is_wrong_is_none() {
    for state in [State::Fresh, State::Freed, State::Live(Family::C)] {
        for size in (0..32_000).step_by(if cfg!(miri) { 7001 } else { 97 }) {
            let stored = encode(Trailer { state, size, align_log2: 4 });
            let passes = |stored| {
                decode(stored).is_some()
                    || Fields::decode_free(stored, WORD).is_some()
                    || Fields::decode_live(stored, WORD, Family::C as u32).is_some()
            };
            let passed = (1..256).filter(|wrong| passes(stored ^ wrong)).count();
            assert_eq!(passed, 0, "{state:?} of {size} bytes");
        }
    }
}

#[test]
fn a_size_that_the_field_has_no_room_for_counts_from_a_base() {
    let base = base_of(SMALL_MAX + GRANULE_BYTES);
    assert_eq!((base_of(SMALL_MAX), base), (0, GRANULE_BYTES));
    for state in [State::Freed, State::Live(Family::C)] {
        for size in SMALL_MAX - TRAILER_BYTES + 1..=SMALL_MAX + GRANULE_BYTES - TRAILER_BYTES {
            let trailer = Trailer { state, size, align_log2: 4 };
            let fields = Fields::decode(Fields::with_base(trailer, base).encode(WORD), WORD).expect("it is a trailer");
            assert_eq!(fields.counting_from(base).trailer(), Some(trailer));
        }
    }
    let fresh = Fields::with_base(Trailer::FRESH, base);
    assert_eq!((fresh.encode(0), fresh.trailer()), (0, Some(Trailer::FRESH)));
}
