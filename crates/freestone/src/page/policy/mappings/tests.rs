use super::*;

const MIB: u32 = 16;

#[test]
fn blocks_are_moved_from_an_8192nd_of_the_arena_on() {
    let least = |arena_mib: u32| (1..).find(|&pages| may_move(Pages(pages), Pages(arena_mib * MIB)));
    assert_eq!([least(64), least(1024), least(8192)], [Some(1), Some(2), Some(MIB)]);
    assert!(!may_move(Pages(MIB - 1), Pages(8192 * MIB)));
}

#[test]
fn blocks_of_4_mebibytes_may_be_huge_in_64_gibibytes() {
    assert!(may_be_huge(Pages(4 * MIB), Pages(65536 * MIB)));
    assert!(!may_be_huge(Pages(4 * MIB), Pages(65536 * MIB + HUGE_SHARE)));
}
