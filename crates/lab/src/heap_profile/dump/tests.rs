use super::*;

const MAPS: &str = "\nMAPPED_LIBRARIES:\n55d0-55f0 r-xp 00000000 fe:01 1234                       /usr/bin/x\n";

fn gperftools(lines: &str, interval: u64) -> String {
    format!("heap profile: 1: 2 [ 3: 4 ] @ heap_v2/{interval}\n{lines}{MAPS}")
}

fn amount(blocks: i64, bytes: i64) -> Amount {
    Amount { blocks, bytes }
}

#[test]
fn both_spellings_say_the_same() {
    let one = parse(&gperftools("3: 4096 [ 5: 6144 ] @ 0x55d4 0x55e4", 1)).unwrap();
    let text = "heap_v2/1\n  t*: 9: 9 [9: 9]\n  t0: 9: 9 [9: 9]\n@ 0x55d4 0x55e4\n  t*: 3: 4096 [5: 6144]\n  t0: 3: 4096 [5: 6144]";
    let other = parse(&format!("{text}{MAPS}")).unwrap();
    assert_eq!(one, other);
    let sample = &one.samples[0];
    assert_eq!(sample.stack, [0x55d4, 0x55e4]);
    assert_eq!(sample.usage, Usage { live: amount(3, 4096), total: amount(5, 6144) });
    assert_eq!(one.mappings[0].path, "/usr/bin/x");
}

#[test]
fn sampling_is_undone_as_pprof_does() {
    // Blocks of exactly the interval are sampled with a probability of 1 - 1/e.
    let profile = parse(&gperftools("632: 331350016 [ 632: 331350016 ] @ 0x55d4", 524_288)).unwrap();
    assert_eq!(profile.samples[0].usage.live, amount(999, 524_188_007));
    // Large blocks are all sampled, and small ones stand for about an interval each.
    assert_eq!(unsampled(amount(1, 1 << 30), 524_288), amount(1, 1 << 30));
    let small = unsampled(amount(1, 16), 524_288);
    assert!((524_000..525_000).contains(&small.bytes), "{small:?}");
    assert_eq!(unsampled(amount(7, 70), 1), amount(7, 70));
    assert_eq!(unsampled(amount(0, 0), 1000), amount(0, 0));
}

#[test]
fn what_is_no_whole_dump_of_this_version_is_refused_with_a_reason() {
    let why = |text: &str| format!("{:#}", parse(text).unwrap_err());
    assert!(why("").contains("empty"));
    assert!(why("hello\n").contains("not a heap profile"));
    assert!(why("heap_v3/512\n").contains("another version, 'heap_v3/512'"));
    assert!(why("heap profile: 1: 2 [ 3: 4 ] @ heap_v9/1\n").contains("another version"));
    assert!(why("heap_v2/x\n").contains("no sampling interval"));
    assert!(why("heap_v2/512\n@ 0x1\n  t*: 1: 2 [0: 0]\n").contains("cut short"));
    assert!(why(&gperftools("1: 2 [ 3: 4 ] @ 0xzz", 1)).contains("line 2 is damaged"));
    assert!(why(&gperftools("1: 2 [ 3: 4 ", 1)).contains("line 2 is damaged"));
    assert!(why(&gperftools("1: 2 [ 3 ] @ 0x1", 1)).contains("damaged"));
    assert!(why(&format!("heap_v2/1\nnonsense{MAPS}")).contains("line 2 is damaged"));
}

#[test]
fn files_that_cannot_be_read_or_are_compressed_are_named() {
    let missing = format!("{:#}", read(Path::new("/no/such/profile")).unwrap_err());
    assert!(missing.contains("/no/such/profile cannot be read"), "{missing}");
    let file = crate::scratch_file::ScratchFile::new("dump-test").unwrap();
    fs::write(file.path(), [0x1f, 0x8b, 8]).unwrap();
    assert!(format!("{:#}", read(file.path()).unwrap_err()).contains("compressed"));
}

#[test]
fn the_remark_about_lost_samples_is_read_and_other_remarks_are_not() {
    let lost = |remark: &str| parse(&gperftools(&format!("1: 2 [ 3: 4 ] @ 0x1\n{remark}\n"), 1)).unwrap().lost;
    assert_eq!(lost("# 31 samples were lost"), 31);
    assert_eq!((lost(""), lost("# x samples were lost"), lost("# 31 samples")), (0, 0, 0));
}

#[test]
fn a_profile_without_samples_is_a_profile() {
    assert!(parse(&format!("heap profile: 0: 0 [ 0: 0 ] @ heap_v2/524288{MAPS}")).unwrap().samples.is_empty());
}
