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
    let families = [Family::C, Family::Rust, Family::New, Family::NewArray].map(State::Live);
    for state in [State::Fresh, State::Freed].into_iter().chain(families) {
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
    // Ten bits of 16 must be right, and the state must be one of six of eight.
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

/// A secret made of this number.
fn secret_of(number: u64) -> Secret {
    let secret = Secret::new();
    secret.draw(|| number);
    secret
}

#[test]
fn the_number_of_an_address_depends_on_the_secret_and_on_the_whole_address() {
    let addresses = || (0..4096_usize).map(|n| 0x7f12_3400_0000 + n * 16);
    let secrets = [0x0123_4567_89ab_cdee, 0xfedc_ba98_7654_3210].map(secret_of);
    let words: std::collections::BTreeSet<_> =
        secrets.iter().flat_map(|secret| addresses().map(|address| secret.word(address))).collect();
    assert_eq!(words.len(), 2 * 4096);
    for bit in 0..64 {
        let n = addresses().filter(|&address| secrets[0].word(address) >> bit & 1 == 1).count();
        assert!((1700..2400).contains(&n), "bit {bit} is set for {n} of 4096 addresses");
    }
}

#[test]
fn a_secret_of_zero_is_drawn_once_too() {
    let secret = secret_of(0);
    let word = secret.word(16);
    secret.draw(|| 0xfedc_ba98_7654_3210);
    assert_eq!(secret.word(16), word);
    assert_ne!(secret_of(0xfedc_ba98_7654_3210).word(16), word);
}

#[test]
fn a_trailer_with_one_wrong_bit_is_none() {
    let secret = secret();
    for (n, state) in [State::Fresh, State::Freed, State::Live(Family::C)].into_iter().enumerate() {
        for size in (0..32_000).step_by(97) {
            let word = secret.word(0x10_0000 + 16 * (size + n));
            let stored = Trailer { state, size, align_log2: 4 }.encode(word);
            let passed = (0..32).filter(|bit| Trailer::decode(stored ^ 1 << bit, word).is_some()).count();
            assert_eq!(passed, 0, "{state:?} of {size} bytes");
        }
    }
}

#[test]
fn every_late_byte_of_a_canary_is_looked_at_and_no_byte_that_the_program_has() {
    for size in 0..=60 - canary::LATE_BYTES {
        let (mut block, secret) = (Block([0; 64]), secret());
        // SAFETY: the block is this test's.
        let marked = unsafe { Marked::at(block.0.as_mut_ptr(), 64, &secret) };
        marked.write_canary(size);
        // A canary that does not reach the trailer is not looked at: its last bytes are not before the trailer.
        let reaches = size + canary::MOST_BYTES >= marked.capacity();
        for at in 0..marked.capacity() {
            let byte = marked.start().wrapping_add(at);
            // SAFETY: the byte is one of the block, which is this test's.
            let before = unsafe { byte.read() };
            // SAFETY: as above.
            unsafe { byte.write(!before) };
            let is_late = reaches && at >= marked.capacity() - canary::LATE_BYTES;
            assert_eq!(marked.late_damage(size), is_late.then_some(at), "byte {at} behind {size}");
            // SAFETY: as above.
            unsafe { byte.write(before) };
        }
    }
}

/// The OS page of the trailer was purged while the block was free: it is zero.
#[test]
fn a_tail_is_purged_if_it_is_zero_and_in_another_os_page_than_the_start() {
    #[repr(align(32))]
    struct Pages([u8; 128]);
    let (mut pages, secret) = (Pages([0; 128]), secret());
    for (start, bytes, crosses) in [(0, 32, false), (0, 48, true), (16, 16, false), (16, 32, true), (64, 32, false)] {
        let block = pages.0.as_mut_ptr().wrapping_add(start);
        // SAFETY: the block is this test's.
        let marked = unsafe { Marked::at(block, bytes, &secret) };
        assert_eq!(marked.is_tail_purged(32), crosses, "{bytes} bytes at {start}");
        marked.set_trailer(Trailer::FRESH);
        assert!(!marked.is_tail_purged(32), "its trailer is there");
        pages.0.fill(0);
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
