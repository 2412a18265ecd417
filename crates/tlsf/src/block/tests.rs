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
                block.set_header(Header::new(size, flags), sealer);
                block.header(sealer)
            };
            assert!(header.is_whole());
            assert_eq!((header.size(), header.is_free()), (size, flags & FREE != 0));
            assert_eq!(header.is_prev_free(), flags & PREV_FREE != 0);
            assert_eq!(header.is_whole_without(FREE), flags & FREE == 0);
            // SAFETY: the memory is ours.
            let as_free = unsafe { block.header(sealer.of_free()) };
            assert_eq!(as_free.is_whole_without(FREE | PREV_FREE), flags == FREE);
            assert_eq!(header.longer(48), Header::new(size + 48, flags));
            for flag in [FREE, PREV_FREE] {
                let set = flags & flag != 0;
                let other = if set { header.without(flag) } else { header.with(flag) };
                assert_eq!(other, Header::new(size, flags ^ flag));
            }
            assert_eq!(header.used(64), Header::new(64, flags & PREV_FREE));
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
            first.set_header(Header::new(32, 0), sealer);
            first.0.byte_add(if cfg!(target_endian = "little") { 0 } else { 7 }).write(0);
            assert!(!first.header(sealer).is_whole());
        }
    }
}

#[test]
fn seals_of_other_heaps_differ_mostly() {
    let mut memory = Memory([0; 128]);
    let block = header_in(&mut memory);
    // SAFETY: the memory is ours.
    unsafe {
        block.set_header(Header::new(32, 0), Sealer::new(1));
        let mistaken = (2..2002).filter(|&number| block.header(Sealer::new(number)).is_whole()).count();
        assert!(mistaken < 10, "{mistaken} of 2000 other heaps make the same seal");
    }
}
