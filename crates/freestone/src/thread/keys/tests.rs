use super::*;
use freestone_base::inbox::Node;
use std::vec::Vec;

fn source() -> (KeySource, impl Fn() -> u64) {
    (KeySource::new(), || 0x0123_4567_89AB_CDEF)
}

/// What a link decodes to over which a program wrote `address`.
fn decoded(key: LinkKey, address: usize) -> usize {
    key.apply(core::ptr::without_provenance_mut::<Node>(address)).addr()
}

#[test]
fn the_hash_is_the_one_of_its_authors() {
    let seed = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
    assert_eq!(sip_hash(seed, 0x0706_0504_0302_0100), 0x93f5_f579_9a93_2462);
}

#[test]
fn every_heap_has_a_key_of_its_own_and_all_have_one_in_transit() {
    let (mut keys, random) = source();
    let drawn: Vec<_> = (0..1000).map(|_| keys.draw(Harden::Default, Harden::Default, &random)).collect();
    let bins: std::collections::BTreeSet<_> = drawn.iter().map(|keys| decoded(keys.of_bins, 0)).collect();
    assert_eq!(bins.len(), 1000);
    assert!(drawn.iter().all(|keys| keys.in_transit == drawn[0].in_transit));
}

#[test]
fn what_a_program_writes_over_a_link_decodes_to_no_address_of_a_block() {
    let (mut keys, random) = source();
    for keys in (0..1000).map(|_| keys.draw(Harden::Default, Harden::Default, &random)) {
        for key in [keys.of_bins, keys.in_transit] {
            for address in [0, 0x10, 0x7FFF_FFFF_FFF0, 0x2800_0001_0000, usize::MAX << 4] {
                assert_ne!(decoded(key, address) % 16, 0, "an aligned address or zero");
            }
            for value in [0, 1, 0x41, 0x4141_4141, 0x7FFF_FFFF_FFFF] {
                assert_ne!(decoded(key, value) >> 48 & 0xFF, 0, "no user address, on AArch64 either");
            }
            assert_ne!(decoded(key, 0) & 0xFF, 0, "a zero byte over the lowest one");
        }
        let link = decoded(keys.in_transit, 0x2800_0001_0000);
        assert_ne!(decoded(keys.of_bins, link) % 16, 0, "a link of the other kind");
    }
}

#[test]
fn the_lowest_bits_tell_the_two_kinds_of_links_apart_whatever_the_seed() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200_u64 {
        let keys = KeySource::new().draw(Harden::Default, Harden::Default, || seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (of_bins, in_transit) = (decoded(keys.of_bins, 0) & 15, decoded(keys.in_transit, 0) & 15);
        assert!((1..8).contains(&of_bins) && (8..16).contains(&in_transit), "{of_bins} {in_transit}");
        seen.extend([of_bins, in_transit]);
    }
    assert_eq!(seen.len(), 15, "{seen:?}");
}

#[test]
fn without_hardening_links_are_addresses_and_the_kernel_is_not_asked() {
    let keys = KeySource::new().draw(Harden::Off, Harden::Off, || panic!("no random number is needed"));
    assert!(keys.of_bins.is_plain() && keys.in_transit.is_plain() && keys.of_inbox.is_plain());
}

#[test]
fn a_hardened_heap_in_a_process_that_is_not_has_a_key_for_its_inbox_alone() {
    let (mut keys, random) = source();
    let heap = keys.draw(Harden::Off, Harden::Checks, &random);
    assert!(heap.of_bins.is_plain() && heap.in_transit.is_plain() && !heap.of_inbox.is_plain());
    let heap = keys.draw(Harden::Default, Harden::Off, &random);
    assert!(!heap.of_bins.is_plain() && heap.in_transit == heap.of_inbox, "other heaps are sent batches of it");
}
