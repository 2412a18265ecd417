use super::*;

#[test]
fn a_header_has_the_size_and_flags_that_it_was_made_with() {
    let sealer = Sealer::new(7);
    // The largest but for the 48 bytes that are added below.
    let largest = ((usize::MAX >> 16) & !(GRANULE - 1)) - 48;
    for size in [0, 32, 4096, 1 << 30, largest] {
        for flags in [0, FREE, PREV_FREE, FREE | PREV_FREE] {
            let word = sealer.encode(Header::new(size, flags));
            let header = sealer.decode(word);
            assert!(header.is_intact());
            assert_eq!((header.size(), header.is_free()), (size, flags & FREE != 0));
            assert_eq!(header.is_prev_free(), flags & PREV_FREE != 0);
            assert_eq!(header.is_intact_without(FREE), flags & FREE == 0);
            assert_eq!(header.is_intact_without(PREV_FREE), flags & PREV_FREE == 0);
            assert_eq!(sealer.of_free().decode(word).is_intact_without(FREE | PREV_FREE), flags == FREE);
            assert_eq!(header.longer(48), Header::new(size + 48, flags));
            for flag in [FREE, PREV_FREE] {
                let set = flags & flag != 0;
                let other = if set { header.without(flag) } else { header.with(flag) };
                assert_eq!(other, Header::new(size, flags ^ flag));
            }
            assert_eq!(header.used(64), Header::new(64, flags & PREV_FREE));
        }
    }
    assert_eq!(Header::new(48, PREV_FREE).joined(Header::new(64, FREE)), Header::new(112, FREE | PREV_FREE));
}

#[test]
fn a_flipped_bit_breaks_the_seal_unless_it_is_a_flag_or_part_of_the_size() {
    for number in (1..500).step_by(if cfg!(miri) { 83 } else { 1 }) {
        let sealer = Sealer::new(number);
        let word = sealer.encode(Header::new(4096, 0));
        for bit in 0..64 {
            let is_flag = [FREE, PREV_FREE].contains(&(1 << bit));
            let is_size = (SIZE_SHIFT + GRANULE.trailing_zeros()..SIZE_SHIFT + usize::BITS.min(48)).contains(&bit);
            let header = sealer.decode(word ^ 1 << bit);
            assert!(header.is_intact() == (is_flag || is_size), "bit {bit} of {word:#x}");
        }
    }
}

#[test]
fn a_nul_written_over_a_headers_first_byte_always_breaks_its_seal() {
    for number in (1..500).step_by(if cfg!(miri) { 83 } else { 1 }) {
        let sealer = Sealer::new(number);
        let mut bytes = sealer.encode(Header::new(32, 0)).to_ne_bytes();
        bytes[if cfg!(target_endian = "little") { 0 } else { 7 }] = 0;
        assert!(!sealer.decode(u64::from_ne_bytes(bytes)).is_intact());
    }
}

#[test]
fn a_header_of_zeros_is_not_intact() {
    assert!((1..500).all(|number| !Sealer::new(number).decode(0).is_intact()));
}

#[test]
fn the_seals_of_most_other_heaps_differ() {
    let word = Sealer::new(1).encode(Header::new(32, 0));
    let mistaken = (2..2002).filter(|&number| Sealer::new(number).decode(word).is_intact()).count();
    assert!(mistaken < 10, "{mistaken} of 2000 other heaps make the same seal");
}

#[test]
fn no_list_has_a_number_that_is_a_header() {
    for second in [1, 2, 4, 8, 16, 32] {
        for first_level in [0, 1024] {
            let lists = first_level * second..(first_level + 43) * second;
            // As many heaps as have seals of their own.
            for number in 1..(if cfg!(miri) { 20 } else { 1 << 13 }) {
                let sealer = Sealer::new(number).unlike(&lists);
                assert!(
                    !lists.clone().any(|list| sealer.decode(list as u64).is_intact_without(FREE)),
                    "heap {number}, {lists:?}"
                );
            }
        }
    }
}
