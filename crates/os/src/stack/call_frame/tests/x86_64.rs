//! Call frame information as compilers write it for x86-64.

extern crate std;
use super::super::*;
use super::rule;
use crate::stack::rule::{Base, Saved};
use core::sync::atomic::{AtomicU32, Ordering};
use std::vec::Vec;

/// Header, table of one row, common part and entry of a function of 32 bytes that pushes the frame pointer after its first byte and
/// makes it the base after its fourth.
fn information(function: usize) -> Vec<u32> {
    let mut bytes: Vec<u8> = Vec::new();
    bytes.extend([1, 0x1b, 0x03, 0x3b]);
    bytes.extend([0; 4]);
    bytes.extend(1u32.to_ne_bytes());
    bytes.extend([0; 8]);
    let common = bytes.len();
    bytes.extend(20u32.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend([1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b]);
    bytes.extend([0x0c, 7, 8, 0x90, 1, 0, 0]);
    let entry = bytes.len();
    bytes.extend(24u32.to_ne_bytes());
    bytes.extend(((entry + 4 - common) as u32).to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(32u32.to_ne_bytes());
    bytes.push(0);
    bytes.extend([0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x50, 0xc6, 0x0c]);
    let mut words: Vec<u32> = Vec::new();
    bytes.resize(entry + 28, 0);
    bytes[entry + 28 - 1] = 0;
    words.extend(bytes.chunks(4).map(|chunk| u32::from_ne_bytes(chunk.try_into().unwrap())));
    let start = words.as_ptr().expose_provenance();
    words[3] = function.wrapping_sub(start) as u32;
    words[4] = entry as u32;
    words
}

#[test]
fn each_instruction_of_a_function_has_the_rule_of_the_last_change_before_it() {
    let anchor = std::vec![0u8; 64];
    let function = anchor.as_ptr().addr();
    let info = information(function);
    if (function as isize - info.as_ptr().addr() as isize).unsigned_abs() > i32::MAX as usize {
        return;
    }
    let at = |offset: usize| rule(info.as_ptr().addr(), function + offset);
    let entry = Rule { base: Base::Stack, offset: 8, return_address: Saved::At(-8), frame_pointer: Saved::Same };
    assert_eq!(at(0), Some(entry));
    let pushed = Rule { offset: 16, frame_pointer: Saved::At(-16), ..entry };
    assert_eq!([at(1), at(3)], [Some(pushed); 2]);
    assert_eq!([at(4), at(19)], [Some(Rule { base: Base::Frame, ..pushed }); 2]);
    assert_eq!(at(32), None, "behind the function");
    assert_eq!(rule(info.as_ptr().addr(), function - 1), None, "before the first function");
}

#[test]
fn a_rule_is_the_same_wherever_the_digest_is_whichever_bit_is_changed() {
    let anchor = std::vec![0u8; 64];
    let function = anchor.as_ptr().addr();
    let words: Vec<AtomicU32> = information(function).into_iter().map(AtomicU32::new).collect();
    let info = words.as_ptr().expose_provenance();
    if (function as isize - info as isize).unsigned_abs() > i32::MAX as usize {
        return;
    }
    words[3].store(function.wrapping_sub(info) as u32, Ordering::Relaxed);
    for offset in [0, 2, 10] {
        let (code, mut n_told) = (function + offset, 0);
        let before = (digest(info, 0, code), rule(info, code));
        assert!(before.0.is_some() && before.1.is_some());
        assert_eq!(digest(info, 1, code), None, "there is one row");
        for (word, bit) in (0..words.len()).flat_map(|word| (0..32).map(move |bit| (word, bit))) {
            words[word].fetch_xor(1 << bit, Ordering::Relaxed);
            if digest(info, 0, code) == before.0 {
                assert_eq!(rule(info, code), before.1, "bit {bit} of word {word}");
            } else {
                n_told += 1;
            }
            words[word].fetch_xor(1 << bit, Ordering::Relaxed);
        }
        assert!(n_told > 300, "{n_told}");
    }
}

#[test]
fn the_digest_is_of_the_row_that_the_code_is_in() {
    let anchor = std::vec![0u8; 64];
    let function = anchor.as_ptr().addr();
    let info = information(function);
    let at = info.as_ptr().addr();
    if (function as isize - at as isize).unsigned_abs() > i32::MAX as usize {
        return;
    }
    assert!(digest(at, 0, function).is_some());
    assert_eq!(digest(at, 0, function - 1), None);
}
