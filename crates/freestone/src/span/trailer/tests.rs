#![allow(unsafe_code)]
use super::*;

#[repr(align(16))]
struct Block([u8; 64]);

fn secret() -> Secret {
    let secret = Secret::new();
    secret.draw(|| 0x0123_4567_89ab_cdef);
    secret
}

#[test]
fn what_is_written_into_a_trailer_is_read_from_it() {
    let (mut block, secret) = (Block([0; 64]), secret());
    // SAFETY: the block is this test's.
    let marked = unsafe { Marked::at(block.0.as_mut_ptr(), 64, &secret) };
    for state in [State::Fresh, State::Freed, State::Live(Family::C), State::Live(Family::Rust)] {
        for size in 0..=marked.capacity() {
            for align_log2 in [0, 4, 15] {
                let trailer = Trailer { state, size, align_log2 };
                marked.set_trailer(trailer);
                assert_eq!(marked.trailer(), Some(trailer));
            }
        }
    }
}

#[test]
fn few_of_the_numbers_that_are_no_trailer_pass_for_one() {
    let (word, mut passed) = (secret().word(0x1000), 0);
    for stored in (0..1 << 16).map(|n: u32| n.wrapping_mul(0x9E37_79B9)) {
        passed += u32::from(Trailer::decode(stored, word).is_some());
    }
    // Ten bits of 16 must be right, and the state must be one of four of eight.
    assert!(passed < 100, "{passed} of 65536");
}

#[test]
fn a_secret_is_drawn_once() {
    let secret = secret();
    let word = secret.word(7);
    secret.draw(|| 99);
    assert_eq!(secret.word(7), word);
    assert_ne!(secret.word(8), word);
}

#[test]
fn the_head_of_a_free_block_is_restored_to_what_it_was() {
    for size in [0, 5, 16, 40] {
        let (mut block, secret) = (Block([0; 64]), secret());
        // SAFETY: the block is this test's.
        let marked = unsafe { Marked::at(block.0.as_mut_ptr(), 64, &secret) };
        marked.write_canary(size);
        marked.fill(size);
        // SAFETY: as above.
        unsafe { marked.start().write_bytes(1, GRANULE_BYTES) };
        marked.fill_head(size);
        assert_eq!(marked.freed_damage(size, 4096), None, "{size}");
    }
}
