#![allow(unsafe_code)]

use super::*;
use crate::header::{FREE, PREV_FREE};
use crate::mapping::FIRST_LEVEL;

/// Memory for three headers, each at an odd multiple of 8.
#[repr(align(16))]
struct Memory([u64; 16]);

/// The blocks whose headers are `words` words into the memory.
fn blocks<const N: usize>(memory: &mut Memory, words: [usize; N]) -> [Block; N] {
    let words_of = NonNull::from(&mut memory.0).cast::<u64>();
    words.map(|word| {
        // SAFETY: the place is inside the memory.
        let place = unsafe { words_of.add(word) };
        // SAFETY: the place is aligned and initialised.
        unsafe { Block::at(place.cast()) }
    })
}

#[test]
fn a_header_is_read_as_it_was_written_and_wiped_by_unsealing() {
    let mut memory = Memory([0; 16]);
    let [block] = blocks(&mut memory, [1]);
    let (sealer, header) = (Sealer::new(3), Header::new(64, FREE | PREV_FREE));
    block.set_header(header, sealer);
    assert_eq!(block.header(sealer), header);
    assert!(block.has_header(header, sealer) && !block.has_header(header.without(FREE), sealer));
    assert!(!block.has_header(header, Sealer::new(4)));
    block.unseal();
    assert!(!block.header(sealer).is_intact());
}

#[test]
fn payload_neighbours_and_addresses_agree() {
    let mut memory = Memory([0; 16]);
    let [block, next] = blocks(&mut memory, [1, 5]);
    assert_eq!(block.payload_address(), block.address() + 8);
    assert_eq!(block.payload().addr().get(), block.payload_address());
    assert_eq!(block.wrapping_after(32).addr(), next.address());
    // SAFETY: all places are inside the memory.
    assert_eq!(unsafe { Block::of_payload(block.payload()) }, block);
    // SAFETY: as above.
    assert_eq!((unsafe { block.after(32) }, unsafe { next.before(32) }), (next, block));
}

#[test]
fn links_and_the_size_at_the_end_have_places_of_their_own() {
    let mut memory = Memory([0; 16]);
    let [block, next] = blocks(&mut memory, [1, 5]);
    let list = ListIndex::of_number(FIRST_LEVEL * 32 + 7);
    block.set_header(Header::new(32, FREE), Sealer::new(3));
    next.set_size_before(32);
    // SAFETY: the block is a free one of 32 bytes.
    unsafe { block.set_next_free(Some(next)) };
    // SAFETY: as above.
    unsafe { block.set_back_link(BackLink::list(list)) };
    // SAFETY: as above.
    assert_eq!((unsafe { block.next_free() }, unsafe { block.back_link() }), (Some(next), BackLink::list(list)));
    // SAFETY: as above.
    assert_eq!(unsafe { next.size_before() }, 32);
    // SAFETY: as above.
    unsafe { BackLink::block(block).set_next_free(None) };
    // SAFETY: as above.
    assert_eq!(unsafe { block.next_free() }, None);
    assert_eq!(block.header(Sealer::new(3)), Header::new(32, FREE));
}

#[test]
fn a_back_link_is_a_list_or_a_block_whatever_the_lists_number() {
    let mut memory = Memory([0; 16]);
    let [block] = blocks(&mut memory, [1]);
    assert_eq!(BackLink::block(block).as_list(), None);
    for number in [FIRST_LEVEL * 2, FIRST_LEVEL * 32, LISTS_END - 1] {
        let list = ListIndex::of_number(number);
        assert_eq!(BackLink::list(list).as_list(), Some(list));
    }
}

#[test]
fn no_block_equals_none() {
    let mut memory = Memory([0; 16]);
    let [block] = blocks(&mut memory, [1]);
    assert_ne!(block, Block::NONE);
    assert!(!Block::NONE.address().is_multiple_of(2));
}
