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

/// A block of 64 bytes, handed out for so many, and its secret.
fn live(block: &mut Block, size: usize) -> Marked {
    let secret = secret();
    // SAFETY: the block is the test's.
    let marked = unsafe { Marked::at(block.0.as_mut_ptr(), 64, &secret) };
    marked.write_canary(size);
    marked.set_trailer(Trailer { state: State::Live(Family::C), size, align_log2: 3 });
    marked
}

#[test]
fn a_block_is_whole_until_a_byte_behind_what_was_asked_for_is_written() {
    for size in 0..=60 {
        let mut block = Block([0; 64]);
        let marked = live(&mut block, size);
        let trailer = Trailer { state: State::Live(Family::C), size, align_log2: 3 };
        assert_eq!(marked.if_whole(Family::C as u32), Some((Family::C, trailer)));
        assert_eq!(marked.if_whole(Family::Rust as u32), None);
        assert_eq!(marked.if_whole(0), None, "of no family");
        assert!(!marked.is_unused());
        for at in size..canary::range(size, 60).end {
            let byte = marked.start().wrapping_add(at);
            // SAFETY: the byte is the test's block's.
            let before = unsafe { byte.replace(0x41) };
            assert_eq!((marked.if_whole(Family::C as u32), marked.canary_damage(size)), (None, Some(at)));
            assert_eq!(marked.is_tail_whole(), !(36..=52).contains(&size) || at < 52, "{size}, {at}");
            assert_eq!(marked.late_damage(size).is_none(), marked.is_tail_whole());
            // SAFETY: as above.
            unsafe { byte.write(before) };
        }
        assert!(marked.is_tail_whole());
    }
}

#[test]
fn a_free_block_is_unused_until_a_byte_that_was_filled_is_written() {
    for size in [0, 1, 16, 40, 60] {
        let mut block = Block([0; 64]);
        let marked = live(&mut block, size);
        marked.set_trailer(Trailer { state: State::Freed, size, align_log2: 3 });
        marked.fill(size);
        assert!(marked.is_unused() && marked.is_tail_whole());
        assert_eq!(marked.freed_damage(size, 4096), None);
        for at in 0..size {
            let byte = marked.start().wrapping_add(at);
            // SAFETY: the byte is the test's block's.
            let before = unsafe { byte.replace(0x41) };
            assert_eq!((marked.is_unused(), marked.freed_damage(size, 4096)), (false, Some(at)));
            // SAFETY: as above.
            unsafe { byte.write(before) };
        }
    }
}
