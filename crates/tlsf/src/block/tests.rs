#![allow(unsafe_code)]

use super::*;

/// Memory whose bytes from 8 on are where a header may be.
#[repr(align(16))]
struct Memory([u8; 128]);

fn header_in(memory: &mut Memory) -> Block {
    // SAFETY: inside the memory.
    Block::at(unsafe { NonNull::from(&mut memory.0).cast().byte_add(8) })
}

#[test]
fn a_header_gives_back_what_was_put_in() {
    let mut memory = Memory([0; 128]);
    let block = header_in(&mut memory);
    let sealer = Sealer::new(7);
    for size in [0, 32, 4096, 1 << 30] {
        for flags in [0, FREE, PREV_FREE, FREE | PREV_FREE] {
            // SAFETY: the memory is ours.
            let header = unsafe {
                block.seal(sealer, size, flags);
                block.header()
            };
            assert!(block.is_sealed(header, sealer));
            assert_eq!((header.size(), header.is_free()), (size, flags & FREE != 0));
            assert_eq!(header.is_prev_free(), flags & PREV_FREE != 0);
            assert!(!header.with(FREE).without(FREE).is_free() && header.with(PREV_FREE).is_prev_free());
            assert_eq!(header.resized(64, 0).size(), 64);
        }
    }
}

#[test]
fn a_nul_written_over_a_headers_first_byte_always_breaks_its_seal() {
    let mut memory = Memory([0; 128]);
    let first = header_in(&mut memory);
    for number in 1..500 {
        let sealer = Sealer::new(number);
        // SAFETY: the memory is ours.
        unsafe {
            first.seal(sealer, 32, 0);
            first.0.byte_add(if cfg!(target_endian = "little") { 0 } else { 7 }).write(0);
            assert!(!first.is_sealed(first.header(), sealer));
        }
    }
}

#[test]
fn seals_of_neighbouring_places_and_of_other_heaps_differ_mostly() {
    let mut memory = Memory([0; 128]);
    let block = header_in(&mut memory);
    // SAFETY: the memory is ours.
    let (header, other) = unsafe {
        block.seal(Sealer::new(1), 32, 0);
        (block.header(), block.after(16))
    };
    let mistaken = (2..2002).filter(|&number| block.is_sealed(header, Sealer::new(number))).count();
    assert!(mistaken < 10, "{mistaken} of 2000 other salts give the same seal");
    assert!(!other.is_sealed(header, Sealer::new(1)));
}
