//! The pools' C interface: `c/pool.c`, in each way that a program gets the library; and the example.

mod harness;

use harness::{Way, crate_dir, run_everywhere};

macro_rules! parts {
    ($($part:ident: $sentence:ident),* $(,)?) => {$(
        #[test]
        fn $sentence() {
            run_everywhere("pool.c", stringify!($part));
        }
    )*};
}

parts! {
    blocks: blocks_are_distinct_zero_when_asked_for_and_come_back,
    alignments: every_alignment_is_really_given,
    shapes: shapes_and_memory_that_do_not_suit_are_refused_with_the_reason,
    wrong_frees: a_wrong_free_is_told_with_the_blocks_name_and_changes_nothing,
    write_after_free: a_write_into_a_free_block_harms_no_other,
    damage: damaged_bookkeeping_is_told_by_the_check,
    threads: threads_share_a_pool_without_sharing_a_block,
    magazines: magazines_cache_blocks_until_they_are_destroyed,
}

#[test]
fn the_connection_table_example_prints_what_its_header_states() {
    for way in [Way::Shared, Way::Archive] {
        let program = harness::Program::of(
            &crate_dir().join("examples/connection_table.c"),
            way,
            &["-O2", "-Wall", "-Wextra", "-Werror"],
        );
        let said = harness::expect_silent(&mut program.command(), way);
        let expected = "8 connections open, the 9th is turned away\n\
                        connection 3 closed; closing it again: double free of ADDRESS: the block of 32 bytes is free already\n\
                        a new connection takes its place: 0 bytes sent\n\
                        all closed, the table is gone\n";
        let words = said.split(' ').map(|word| if word.starts_with("0x") { "ADDRESS:" } else { word });
        assert_eq!(words.collect::<Vec<_>>().join(" "), expected, "{way:?}");
    }
}
