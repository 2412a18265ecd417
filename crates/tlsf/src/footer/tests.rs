#![allow(unsafe_code)]

use super::*;

const SIZE: usize = 128;

/// Memory for a block of `SIZE` bytes whose header is 8 bytes into it.
#[repr(align(16))]
struct Memory([u8; SIZE + 16]);

fn block_in(memory: &mut Memory) -> Block {
    // SAFETY: inside the memory.
    let place = unsafe { NonNull::from(&mut memory.0).cast::<u8>().byte_add(8) };
    // SAFETY: at a multiple of 8, and initialised.
    unsafe { Block::at(place) }
}

#[test]
fn the_requested_size_is_read_back_up_to_the_longest_slack() {
    let sealer = Sealer::new(5);
    for slack in (0..80).step_by(if cfg!(miri) { 11 } else { 1 }) {
        let mut memory = Memory([0; SIZE + 16]);
        let block = block_in(&mut memory);
        let requested = SIZE - HEADER_BYTES - FOOTER_BYTES - slack;
        // SAFETY: the block has `SIZE` bytes and no code uses it.
        unsafe { write(block, SIZE, requested, sealer) };
        // SAFETY: as above.
        let read = unsafe { read(block, SIZE, sealer) };
        assert_eq!(read, (slack <= 31).then_some(requested), "{slack} bytes of slack");
    }
}

#[test]
fn every_byte_of_slack_and_footer_that_is_changed_is_noticed_and_none_in_front() {
    let sealer = Sealer::new(5);
    let requested = SIZE - HEADER_BYTES - FOOTER_BYTES - 20;
    for offset in (0..SIZE - HEADER_BYTES).step_by(if cfg!(miri) { 11 } else { 1 }) {
        let mut memory = Memory([0; SIZE + 16]);
        let block = block_in(&mut memory);
        // SAFETY: the block has `SIZE` bytes and no code uses it.
        unsafe { write(block, SIZE, requested, sealer) };
        // SAFETY: the offset is in the block's payload.
        unsafe { *block.payload().as_ptr().wrapping_add(offset) ^= 0x10 };
        // SAFETY: the block has `SIZE` bytes and no code uses it.
        let read = unsafe { read(block, SIZE, sealer) };
        assert_eq!(read.is_some(), offset < requested, "byte {offset}");
    }
}

#[test]
fn a_footer_of_another_heap_or_another_place_is_refused() {
    // Blocks at both kinds of multiples of 16: the footer's address is a part of it.
    let mut both = [const { Memory([0; SIZE + 16]) }; 2];
    for memory in &mut both {
        let block = block_in(memory);
        let requested = SIZE - HEADER_BYTES - FOOTER_BYTES;
        // SAFETY: the block has `SIZE` bytes and no code uses it; its last word is the footer.
        unsafe { write(block, SIZE, requested, Sealer::new(5)) };
        // SAFETY: as above.
        assert_eq!(unsafe { read(block, SIZE, Sealer::new(6)) }, None);
        let footer = block.payload().as_ptr().wrapping_add(SIZE - 16).cast::<u64>();
        // SAFETY: both places are in the block's payload.
        unsafe { footer.wrapping_byte_sub(16).copy_from_nonoverlapping(footer, 1) };
        // SAFETY: as above.
        assert_eq!(unsafe { read(block, SIZE - 16, Sealer::new(5)) }, None);
    }
}

#[test]
fn each_bit_of_the_request_and_of_the_address_changes_the_footer() {
    let (sealer, address, requested) = (Sealer::new(5), 0x5a5a_5a50_usize, 1000_u64);
    let at = |address: usize| NonNull::new(core::ptr::without_provenance_mut(address)).unwrap();
    let word = word_at(at(address), requested, sealer);
    assert!((4..31).all(|bit| word_at(at(address ^ (1 << bit)), requested, sealer) != word));
    assert!((0..31).all(|bit| word_at(at(address), requested ^ (1 << bit), sealer) != word));
}
