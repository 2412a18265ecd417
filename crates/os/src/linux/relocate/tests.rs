//! Moving memory, over the real kernel. qemu, which emulates other processors, moves no mapping to a place of our choice, and has its own answers.
use super::*;
use crate::test_range::TestRange;
use core::ops::Range;
use freestone_testkit::again;

const MIB: usize = 1 << 20;

/// A source of one MiB, and the target behind a MiB between them.
const SOURCE: Range<usize> = 0..MIB;
const TARGET: Range<usize> = 2 * MIB..3 * MIB;

/// The source and the target are committed, in one piece with what is between them, and the source is full of nines.
fn range() -> TestRange<'static, Linux> {
    let range = TestRange::new(&Linux, 64 * MIB, 3 * MIB);
    range.fill(SOURCE, 9);
    range
}

/// Where source and target begin.
fn ends(range: &TestRange<'_, Linux>) -> (*mut u8, *mut u8) {
    (range.at(SOURCE.start), range.at(TARGET.start))
}

#[test]
fn memory_moves_and_leaves_zero_behind() {
    if again::is_emulated() {
        return;
    }
    let range = range();
    range.fill(TARGET, 5);
    range.relocate(SOURCE, TARGET.start).unwrap();
    assert!(range.is_full_of(SOURCE, 0) && range.is_full_of(TARGET, 9));
    range.release(0..3 * MIB).unwrap();
}

/// The source is two mappings, because huge pages are refused in half of it: every kernel refuses to move that.
#[test]
fn a_source_of_several_mappings_is_refused_and_nothing_of_it_has_moved() {
    if again::is_emulated() {
        return;
    }
    let range = range();
    range.advise_huge(0..MIB / 2, false).unwrap();
    range.release(TARGET).unwrap();
    let (from, to) = ends(&range);
    // SAFETY: the source is committed, the target was unmapped above, and both are this test's.
    assert_eq!(unsafe { move_to(from, MIB, to) }, Err(Errno::FAULT));
    assert!(range.is_full_of(SOURCE, 9));
    // SAFETY: the target was unmapped above, and is this test's.
    assert_eq!(unsafe { commit_again(to, MIB) }, Target::Committed);
    range.fill(TARGET, 7);
    assert!(range.is_full_of(TARGET, 7));
    range.release(0..3 * MIB).unwrap();
}

/// Bytes of a long source. From where it starts to where its target does there are two MiB more.
const LONG: usize = 16 * MIB;
const TO_TARGET: usize = LONG + 2 * MIB;

/// A long source, full of nines, whose mappings end at offsets; its target is unmapped. Also returns where it starts, which is where a huge page may.
fn long_range(ends: &[usize]) -> (TestRange<'static, Linux>, usize) {
    let range = TestRange::new(&Linux, 64 * MIB, PIECE_LEAST + TO_TARGET + LONG);
    let address = range.at(0).addr();
    let start = align::up(address, PIECE_LEAST) - address;
    range.fill(start..start + LONG, 9);
    for pair in ends.chunks(2) {
        range.advise_huge(start + pair[0]..start + *pair.get(1).unwrap_or(&LONG), false).unwrap();
    }
    range.release(start + TO_TARGET..start + TO_TARGET + LONG).unwrap();
    (range, start)
}

/// Moves a long source in pieces.
fn move_long(range: &TestRange<'_, Linux>, start: usize) -> Result<(), Target> {
    // SAFETY: the source is committed, the target is unmapped, and both are the caller's.
    unsafe { move_pieces(range.at(start), LONG, range.at(start + TO_TARGET)) }
}

/// Ends a test: everything is at the target, or everything is at the source.
fn end_long(range: &TestRange<'_, Linux>, start: usize, has_moved: bool) {
    let target = start + TO_TARGET..start + TO_TARGET + LONG;
    assert!(range.is_full_of(start..start + LONG, if has_moved { 0 } else { 9 }));
    assert!(!has_moved || range.is_full_of(target.clone(), 9));
    range.release(0..target.end).unwrap();
}

/// Page faults of this thread so far.
fn faults() -> i64 {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is writable.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: it was zeroed, which is a value, and written by the call above.
    unsafe { usage.assume_init() }.ru_minflt
}

/// Mappings that end with a huge page, with a page, and beside the start of another. A copied piece would fault in as much as it has, here and there.
#[test]
fn mappings_of_a_source_are_moved_wherever_they_end() {
    if again::is_emulated() {
        return;
    }
    let os_page = Linux.os_page_bytes();
    for (ends, copied_most) in [
        (&[4 * MIB][..], 0),
        (&[4 * MIB, 10 * MIB], 0),
        (&[5 * MIB, 9 * MIB + PAGE_BYTES], 2 * PIECE_LEAST),
        (&[PAGE_BYTES, LONG - PAGE_BYTES], 2 * PIECE_LEAST),
    ] {
        let (range, start) = long_range(ends);
        let before = faults();
        move_long(&range, start).unwrap();
        let copied = (faults() - before) as usize * os_page;
        assert!(copied <= copied_most + 32 * os_page, "{ends:?}: {copied} bytes");
        end_long(&range, start, true);
    }
}

/// What is copied of a source does not grow with it.
#[test]
fn little_is_copied_of_a_very_long_source() {
    if again::is_emulated() {
        return;
    }
    let length = 256 * MIB;
    let range = TestRange::new(&Linux, 1024 * MIB, 2 * length);
    range.advise_huge(0..101 * MIB + PAGE_BYTES, false).unwrap();
    range.release(length..2 * length).unwrap();
    let before = faults();
    // SAFETY: the source is committed, the target was unmapped above, and both are this test's.
    unsafe { move_pieces(range.at(0), length, range.at(length)) }.unwrap();
    let copied = (faults() - before) as usize * Linux.os_page_bytes();
    assert!(copied <= 2 * LONGEST_COPIED + MIB, "{copied} bytes");
    range.release(0..2 * length).unwrap();
}

/// Mappings of one page each.
#[test]
fn a_source_of_many_mappings_is_copied() {
    let ends = core::array::from_fn::<_, { LONG / PAGE_BYTES - 1 }, _>(|page| (page + 1) * PAGE_BYTES);
    let (range, start) = long_range(&ends);
    move_long(&range, start).unwrap();
    end_long(&range, start, true);
}

/// Another thread maps something in the place of the second piece while the first is moved.
#[test]
fn pieces_that_were_moved_come_back_when_another_has_no_place() {
    let (range, start) = long_range(&[4 * MIB]);
    let target = start + TO_TARGET;
    let taken = target + 5 * MIB;
    range.commit(taken..taken + PAGE_BYTES, false).unwrap();
    assert_eq!(move_long(&range, start), Err(Target::Taken));
    assert_eq!(range.commit(target..target + 4 * MIB, false), Ok(()), "what was moved there is unmapped");
    end_long(&range, start, false);
}

#[test]
fn pieces_end_with_a_huge_page_or_with_a_page() {
    assert_eq!(cut(0, 5 * MIB), 4 * MIB);
    assert_eq!(cut(3 * MIB, 2 * MIB), MIB);
    assert_eq!(cut(3 * MIB, MIB / 2 + 1), MIB / 2);
    assert_eq!(cut(2 * MIB, MIB + PAGE_BYTES + 1), MIB + PAGE_BYTES);
}

/// qemu in user mode does not follow the hint, and unmaps the source although the flag says not to.
#[test]
fn what_an_emulator_moved_elsewhere_is_brought_back_to_a_new_mapping() {
    let range = range();
    let (from, _) = ends(&range);
    // SAFETY: the source is committed, and this test's; the kernel replaces nothing.
    let elsewhere = unsafe { move_near(from, MIB, range.at(MIB + PAGE_BYTES)) }.unwrap();
    range.release(SOURCE).unwrap();
    // SAFETY: the memory at `from` was moved to `elsewhere` above.
    unsafe { bring_back(elsewhere, MIB, from) };
    assert!(range.is_full_of(SOURCE, 9));
    range.release(0..3 * MIB).unwrap();
}

/// Another mapping is where the memory was to go.
#[test]
fn what_the_kernel_moved_elsewhere_is_brought_back() {
    let range = range();
    let (from, to) = ends(&range);
    // SAFETY: the source is committed, and this test's; the kernel replaces nothing.
    let elsewhere = unsafe { move_near(from, MIB, range.at(MIB + PAGE_BYTES)) }.unwrap();
    assert!(elsewhere.addr().abs_diff(from.addr()) >= 3 * MIB && range.is_full_of(SOURCE, 0));
    // SAFETY: the memory at `from` was moved to `elsewhere` above.
    unsafe { bring_back(elsewhere, MIB, from) };
    assert!(range.is_full_of(SOURCE, 9));
    // SAFETY: committing replaces nothing, and the range is this test's.
    let again = || unsafe { commit_again(to, MIB) };
    assert_eq!(again(), Target::Taken);
    range.release(TARGET).unwrap();
    assert_eq!(again(), Target::Committed);
    range.release(0..3 * MIB).unwrap();
}
