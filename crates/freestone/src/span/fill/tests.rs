extern crate std;
use super::*;
use std::vec;

#[test]
fn every_byte_of_a_short_block_and_both_ends_of_a_long_one_are_looked_at() {
    for size in [16, 17, 24, 31, 32, 33, 63, 64, 65, 95, 96, 97, 128, 1000] {
        let mut block = vec![0; size];
        write(&mut block);
        assert_eq!(damage(&block, 4096), None, "{size}");
        for at in 0..size {
            let is_looked_at = size <= WHOLE_BYTES || !(HEAD_BYTES..size - TAIL_BYTES).contains(&at);
            let before = core::mem::replace(&mut block[at], 0x11);
            assert_eq!(damage(&block, 4096), is_looked_at.then_some(at), "{size}");
            block[at] = before;
        }
    }
}

#[test]
fn a_purged_os_page_behind_the_first_is_no_damage_but_a_byte_in_it_is() {
    let os_page_bytes = 16;
    let mut memory = [0; 4 * 16 + 128];
    let skip = os_page_bytes - memory.as_ptr().addr() % os_page_bytes;
    let block = &mut memory[skip..skip + 100];
    write(block);
    block[16..32].fill(0);
    block[96..].fill(0);
    assert_eq!(damage(block, os_page_bytes), None);
    block[20] = 1;
    assert_eq!(damage(block, os_page_bytes), Some(16));
    write(block);
    block[..16].fill(0);
    assert_eq!(damage(block, os_page_bytes), Some(0), "the first OS page of a free block is never purged");
}

/// Whatever part of an OS page a block begins in, what is zero from an OS page's start on was purged, and what is zero sooner was written.
#[test]
fn zeros_are_no_damage_exactly_from_the_start_of_an_os_page_on() {
    let os_page_bytes = 32;
    let memory = &mut [0; 4 * 64];
    let aligned = os_page_bytes - memory.as_ptr().addr() % os_page_bytes;
    for start in 1..os_page_bytes {
        let block = &mut memory[aligned + start..][..WHOLE_BYTES];
        let next = os_page_bytes - start;
        let last = WHOLE_BYTES.min(next + os_page_bytes) - 1;
        write(block);
        block[next..=last].fill(0);
        assert_eq!(damage(block, os_page_bytes), None, "{start}");
        block[last] = 1;
        assert_eq!(damage(block, os_page_bytes), Some(next), "{start}");
        write(block);
        block[next - 1..].fill(0);
        assert_eq!(damage(block, os_page_bytes), Some(next - 1), "{start}");
    }
}
