extern crate std;
use super::*;
use crate::heap_profile::exponential::weight_of;
use proptest::prelude::*;
use std::string::String;
use std::vec::Vec;

/// What `pprof` makes of blocks and bytes.
fn read(shown: Shown, rate: f64) -> (f64, f64) {
    let (blocks, bytes) = (shown.blocks as f64, shown.bytes as f64);
    let chance = -(-(bytes / blocks) / rate).exp_m1();
    (blocks / chance, bytes / chance)
}

#[test]
fn a_reader_gets_the_estimate_back_at_every_size_and_of_sizes_that_are_mixed() {
    let rate = 524_288;
    for sizes in [
        &[16usize][..],
        &[48; 7],
        &[1 << 20],
        &[300_000; 20],
        &[1 << 20; 10],
        &[64 << 20; 3],
        &[16, 1 << 20],
        &[16, 4096, 300_000, 64 << 20],
    ] {
        let weights = sizes.iter().map(|&bytes| weight_of(bytes, rate));
        let sum = weights.fold(Weight::default(), |sum, weight| Weight {
            blocks: sum.blocks + weight.blocks,
            bytes: sum.bytes + weight.bytes,
        });
        let shown = as_samples(sum, rate);
        let ((blocks, bytes), (blocks_read, bytes_read)) = (sum.estimate(), read(shown, rate as f64));
        assert!((bytes_read - bytes).abs() <= 1.5, "{sizes:?}: {shown:?} {bytes_read} {bytes}");
        if sizes.iter().all(|size| size == &sizes[0]) {
            let n_bytes = sizes.iter().sum::<usize>() as u64;
            assert!(shown.blocks == sizes.len() as u64 && shown.bytes.abs_diff(n_bytes) <= 1, "{sizes:?}: {shown:?}");
            assert!((blocks_read / blocks - 1.0).abs() < 1e-3);
        }
    }
    assert_eq!(as_samples(Weight::default(), rate), Shown::default());
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "has the kernel's list of mappings")]
fn the_text_has_a_line_for_each_stack_and_what_is_mapped() {
    let profile = HeapProfile::new();
    assert!(profile.start(1024));
    for (address, stack, bytes) in [(0x1000, &[0x10usize, 0x20][..], 64), (0x2000, &[0x10, 0x30], 1 << 20)] {
        assert!(profile.record_large(address, stack, bytes));
    }
    profile.forget(0x1000);
    for (of, first) in [(Snapshot::Live, "0: 0 [1: 64] @ 0x11 0x21"), (Snapshot::Peak, "1: 64 [1: 64] @ 0x11 0x21")] {
        let mut text = Vec::new();
        let mut sink = |bytes: &[u8]| {
            text.extend_from_slice(bytes);
            Ok(())
        };
        write(&profile, of, &mut sink).expect("memory takes everything");
        let text = String::from_utf8(text).expect("a text");
        let mut lines: Vec<_> = text.lines().take(3).collect();
        lines[1..].sort_unstable();
        assert!(lines[0].starts_with("heap profile: ") && lines[0].ends_with("[2: 1048640] @ heap_v2/1024"), "{text}");
        let mut expected = [first, "1: 1048576 [1: 1048576] @ 0x11 0x31"];
        expected.sort_unstable();
        assert_eq!(lines[1..], expected, "{of:?}");
        assert!(text.contains("\n\nMAPPED_LIBRARIES:\n") && text.contains("r-xp"), "{text}");
    }
}

/// The profile as text.
fn text_of(profile: &HeapProfile) -> String {
    let mut text = Vec::new();
    let mut sink = |bytes: &[u8]| {
        text.extend_from_slice(bytes);
        Ok(())
    };
    write(profile, Snapshot::Live, &mut sink).expect("memory takes everything");
    String::from_utf8(text).expect("a text")
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "has the kernel's list of mappings")]
fn lost_samples_have_a_line_only_if_there_are_some() {
    let profile = HeapProfile::new();
    assert!(profile.start(1024) && !text_of(&profile).contains('#'));
    (0..3).for_each(|_| profile.count_dropped());
    assert!(text_of(&profile).contains("\n# 3 samples were lost\n\nMAPPED_LIBRARIES:\n"));
}

#[test]
fn nothing_and_an_interval_of_nothing_have_no_samples() {
    for (weight, interval) in
        [(Weight::new(0.0, 64.0), 1024), (Weight::new(1.0, 0.0), 1024), (Weight::new(1.0, 64.0), 0)]
    {
        assert_eq!(as_samples(weight, interval), Shown::default());
    }
    assert_eq!(as_samples(Weight::new(1.0 / 64.0, 1.0), 1024), Shown { blocks: 1, bytes: 1 }, "a sample at least");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_other_number_of_bytes_is_read_as_closer_to_the_estimate(
        rate_log2 in 0..24_u32, estimate in 1..1_u64 << 32, part in 0..1000_u64,
    ) {
        let rate = 1_u64 << rate_log2;
        let n = 1 + part.min(estimate / rate);
        let error_of = |bytes: u64| (read(Shown { blocks: n, bytes }, rate as f64).1 - estimate as f64).abs();
        let found = sampled_bytes(n, estimate as f64, rate as f64);
        prop_assert!((1..=estimate).contains(&found));
        for other in [found - 1, found + 1] {
            prop_assert!(other == 0 || other > estimate || error_of(found) <= error_of(other) + 1e-3, "{} {}", n, other);
        }
    }
}

#[test]
fn an_error_of_the_file_is_passed_on() {
    let profile = HeapProfile::new();
    assert_eq!(write(&profile, Snapshot::Live, &mut |_| Err(Errno::NOMEM)), Err(Errno::NOMEM));
    assert!(profile.start(1));
    (0..1000usize).for_each(|n| assert!(profile.record_large(64 * (n + 1), &[n + 1, n + 2, n + 3], 64)));
    let mut n_pieces = 0;
    let mut full = |piece: &[u8]| {
        assert_eq!(piece.len(), PIECE_BYTES);
        n_pieces += 1;
        if n_pieces == 3 { Err(Errno::AGAIN) } else { Ok(()) }
    };
    assert_eq!(write(&profile, Snapshot::Live, &mut full), Err(Errno::AGAIN));
    assert_eq!(n_pieces, 3, "nothing is written behind the error");
}

#[test]
fn the_text_is_the_same_whatever_room_the_kernel_lends() {
    let profile = HeapProfile::new();
    assert!(profile.start(1));
    (0..100usize).for_each(|n| assert!(profile.record_large(64 * (n + 1), &[n + 1, n + 2, n + 3], 64)));
    let texts = [PIECE_BYTES, PIECE_BYTES_LEAST].map(|room| {
        let mut text = Vec::new();
        let mut sink = |piece: &[u8]| {
            assert!(piece.len() <= room);
            text.extend_from_slice(piece);
            Ok(())
        };
        // Without the kernel's list of mappings, what comes before it.
        let _ = write_through(&mut std::vec![0; room], &profile, Snapshot::Live, &mut sink);
        let text = String::from_utf8(text).expect("a text");
        text.split("MAPPED_LIBRARIES").next().map(String::from)
    });
    assert!(texts[0] == texts[1] && texts[0].as_ref().is_some_and(|text| text.lines().count() > 100));
}
