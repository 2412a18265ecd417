extern crate std;
use super::*;
use std::collections::BTreeSet;

/// A secret made of this number.
fn secret_of(number: u64) -> Secret {
    let secret = Secret::new();
    secret.draw(|| number);
    secret
}

#[test]
fn a_secret_is_drawn_once_and_a_copy_is_the_same() {
    for number in [0, 0x0123_4567_89ab_cdef] {
        let (secret, copy) = (secret_of(number), Secret::new());
        let words = secret.words(7);
        secret.draw(|| 99);
        assert_eq!(secret.words(7), words);
        assert_ne!(secret.words(8), words);
        assert_ne!(secret_of(0xfedc_ba98_7654_3210).words(7), words);
        secret.begin_erasing();
        copy.become_copy(&secret);
        assert_eq!((copy.words(7), copy.erases()), (words, true));
    }
}

#[test]
fn the_numbers_of_an_address_depend_on_the_secret_and_on_the_whole_address() {
    let (n_addresses, about_half) = if cfg!(miri) { (64, 8..57) } else { (4096_usize, 1700..2400) };
    let addresses = || (0..n_addresses).map(|n| 0x7f12_3400_0000 + n * 16);
    let secrets = [0x0123_4567_89ab_cdee, 0xfedc_ba98_7654_3210].map(secret_of);
    let all: BTreeSet<_> =
        secrets.iter().flat_map(|secret| addresses().map(|address| secret.words(address).canary)).collect();
    assert_eq!(all.len(), 2 * n_addresses);
    let half = |is_set: &dyn Fn(Words) -> bool| {
        let n = addresses().filter(|&address| is_set(secrets[0].words(address))).count();
        about_half.contains(&n)
    };
    assert!((0..64).all(|bit| half(&|words| words.canary >> bit & 1 == 1)), "of canaries");
    assert!((0..32).all(|bit| half(&|words| words.trailer >> bit & 1 == 1)), "of trailers");
}

/// A program that reads a canary must not know what trailers are mixed with.
#[test]
fn no_bit_of_a_trailers_number_is_that_of_the_canary() {
    let secret = secret_of(0x0123_4567_89ab_cdef);
    let (n_addresses, every, about_half) = if cfg!(miri) { (64, 7, 8..57) } else { (4096_usize, 1, 1500..2600) };
    let words = || (0..n_addresses).map(|n| secret.words(0x7f12_3400_0000 + n * 16));
    for (bit, other) in (0..32 * 64).step_by(every).map(|pair| (pair / 64, pair % 64)) {
        let n = words().filter(|words| u64::from(words.trailer) >> bit & 1 == words.canary >> other & 1).count();
        assert!(about_half.contains(&n), "bit {bit} is bit {other} of {n} canaries");
    }
}
