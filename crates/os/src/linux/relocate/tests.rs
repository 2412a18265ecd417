//! Moving memory, over the real kernel. qemu, which emulates other processors, moves no mapping to a place of our choice, and has its own answers.
use super::*;
use crate::test_range::TestRange;
use freestone_base::units::PAGE_BYTES;
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

/// The first and the last piece are a mapping each, and the one between them two: it is copied.
#[test]
fn pieces_are_moved_or_copied_and_leave_zero_behind() {
    let range = range();
    range.advise_huge(MIB / 4..MIB / 2, false).unwrap();
    range.fill(TARGET, 5);
    range.release(TARGET).unwrap();
    let (from, to) = ends(&range);
    let pieces = [0..MIB / 4, MIB / 4..MIB - PAGE_BYTES, MIB - PAGE_BYTES..MIB];
    // SAFETY: the source is committed, the target was unmapped above, and both are this test's.
    unsafe { move_pieces(from, to, pieces) }.unwrap();
    assert!(range.is_full_of(SOURCE, 0) && range.is_full_of(TARGET, 9));
    range.release(0..3 * MIB).unwrap();
}

/// Another thread maps something in the place of the second piece while the first is moved.
#[test]
fn pieces_that_were_moved_come_back_when_another_has_no_place() {
    let range = range();
    range.release(TARGET).unwrap();
    let (from, to) = ends(&range);
    let middle = TARGET.start + MIB / 2;
    range.commit(middle..middle + PAGE_BYTES, false).unwrap();
    // SAFETY: the source is committed, and both ranges are this test's; the kernel does not replace the mapping in the target.
    let moved = unsafe { move_pieces(from, to, [0..MIB / 4, MIB / 4..MIB, MIB..MIB]) };
    assert_eq!(moved, Err(Target::Taken));
    assert!(range.is_full_of(SOURCE, 9));
    let first = TARGET.start..TARGET.start + MIB / 4;
    assert_eq!(range.commit(first, false), Ok(()), "what was moved there is unmapped");
    range.release(0..3 * MIB).unwrap();
}

#[test]
fn pieces_are_cut_at_whole_huge_pages() {
    assert_eq!(pieces(10, 100, 16), [0..6, 6..86, 86..100]);
    assert_eq!(pieces(32, 32, 16), [0..0, 0..32, 32..32]);
    assert_eq!(pieces(17, 10, 16), [0..0, 0..0, 0..10]);
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
