#![allow(unsafe_code)]

use super::*;

/// 64 bytes for one test, and pointers into them.
struct Arena(NonNull<u64>);

impl Arena {
    fn new() -> Self {
        Self(NonNull::from(Box::leak(Box::new([0_u64; 8]))).cast())
    }
    fn at(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: every test passes an offset within the 64 bytes.
        unsafe { self.0.cast::<u8>().byte_add(offset) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from the box that `new` leaked, and is freed once.
        drop(unsafe { Box::from_raw(self.0.cast::<[u64; 8]>().as_ptr()) });
    }
}

#[test]
fn overlapping_blocks_are_refused_from_either_side() {
    for (first, second) in [(0, 15), (15, 0), (4, 4), (0, 8)] {
        let memory = Arena::new();
        let mut shadow = Shadow::default();
        shadow.handed_out(memory.at(first), 16, 1).unwrap();
        assert!(shadow.handed_out(memory.at(second), 16, 1).is_err());
    }
}

#[test]
fn neighbours_do_not_overlap() {
    let memory = Arena::new();
    let mut shadow = Shadow::default();
    for offset in [16, 0, 32] {
        shadow.handed_out(memory.at(offset), 16, 8).unwrap();
    }
    assert_eq!((shadow.len(), shadow.live_bytes()), (3, 48));
    shadow.giving_back(memory.at(16)).unwrap();
    assert_eq!((shadow.len(), shadow.live_bytes()), (2, 32));
}

#[test]
fn a_byte_that_changed_is_named() {
    let memory = Arena::new();
    let mut shadow = Shadow::default();
    shadow.handed_out(memory.at(0), 16, 1).unwrap();
    // SAFETY: byte 9 lies in the 64 bytes, which nothing else refers to.
    unsafe { *memory.at(9).as_mut() ^= 1 };
    assert!(shadow.giving_back(memory.at(0)).unwrap_err().0.starts_with("byte 9 of 16"));
}

#[test]
fn contents_lost_in_reallocation_are_seen() {
    let memory = Arena::new();
    let mut shadow = Shadow::default();
    shadow.handed_out(memory.at(0), 16, 1).unwrap();
    assert!(shadow.reallocated(memory.at(0), memory.at(32), 24, 1).is_err());
}

#[test]
fn misaligned_blocks_are_refused() {
    let memory = Arena::new();
    assert!(Shadow::default().handed_out(memory.at(1), 1, 2).is_err());
}
