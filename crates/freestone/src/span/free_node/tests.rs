#![allow(unsafe_code)]
use super::*;

const KEY: LinkKey = LinkKey::new(0x7_5555);

/// Room for some blocks of 16 bytes.
#[repr(align(16))]
struct Blocks([[u64; 2]; 8]);

impl Blocks {
    fn at(&mut self, index: usize) -> *mut Node {
        (&raw mut self.0).cast::<Node>().wrapping_byte_add(16 * index)
    }
}

/// What the words of a free block say.
fn says(block: *mut Node) -> (bool, Marked) {
    // SAFETY: the block is the test's.
    let is_marked = unsafe { is_marked(block) };
    // SAFETY: as above.
    (is_marked, unsafe { marked(block) })
}

#[test]
fn a_block_in_a_bin_is_marked_and_links_to_the_next() {
    let mut blocks = Blocks([[0; 2]; 8]);
    let (block, next) = (blocks.at(0), blocks.at(5));
    // SAFETY: the block is the test's.
    let linked = |key| unsafe { super::next(block, key) };
    assert_eq!(says(block), (false, Marked::No));
    // SAFETY: as above.
    unsafe { write_in_bin(block, next, KEY) };
    assert_eq!(says(block), (true, Marked::InBin));
    assert_eq!(linked(KEY), next);
    assert_ne!(linked(LinkKey::PLAIN), next, "it is encoded");
    // SAFETY: as above.
    unsafe { clear_mark(block) };
    assert_eq!(says(block), (false, Marked::No));
}

#[test]
fn a_block_in_transit_is_marked_so_wherever_the_block_ahead_is() {
    let mut blocks = Blocks([[0; 2]; 8]);
    let block = blocks.at(3);
    let far = block.wrapping_byte_add(1 << 40);
    for ahead in [ptr::null_mut(), block, blocks.at(2), blocks.at(4), blocks.at(7), far] {
        // SAFETY: the block is the test's.
        unsafe { write_in_transit(block, blocks.at(1), ahead, KEY) };
        assert_eq!(says(block), (true, Marked::InTransit), "{ahead:?}");
        // SAFETY: as above.
        let is_as_buffered = |next| unsafe { is_as_buffered(block, next, KEY) };
        assert!(is_as_buffered(blocks.at(1)) && !is_as_buffered(blocks.at(2)));
    }
    // SAFETY: as above.
    unsafe { second_word(block).write(mark_in(-2)) };
    assert_eq!(says(block), (true, Marked::No), "no such place is given");
    for n in [1, 2, 4096] {
        // SAFETY: as above.
        unsafe { mark_stretch(block, n) };
        assert_eq!(says(block), (true, Marked::Stretch(n)));
        // SAFETY: as above.
        assert!(unsafe { !is_in_transit(block) });
    }
    // SAFETY: as above.
    unsafe { mark_suspect(block) };
    assert_eq!(says(block), (true, Marked::Suspect));
}
