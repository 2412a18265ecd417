//! The malloc family on a lattice of sizes, alignments and overflow: `c/conformance.c`, in each way that a program gets the library.

mod harness;

use harness::{Program, Way, expect_silent, is_musl, run_everywhere};

macro_rules! parts {
    ($($part:ident: $sentence:ident),* $(,)?) => {$(
        #[test]
        fn $sentence() {
            run_everywhere("conformance.c", stringify!($part));
        }
    )*};
}

#[test]
fn the_other_names_of_glibcs_functions_are_of_these() {
    if is_musl() {
        return;
    }
    for way in [Way::Preload, Way::Shared] {
        expect_silent(&mut Program::new("other_names.c", way).command(), way);
    }
}

parts! {
    sizes: every_size_gives_a_block_of_its_own,
    absurd: sizes_no_machine_gives_are_refused_with_enomem,
    overflow: products_that_overflow_are_refused,
    alignments: every_alignment_to_a_gibibyte_is_really_given,
    bad_alignments: odd_alignments_are_rounded_up_or_refused_as_by_glibc,
    pages: valloc_and_pvalloc_give_os_pages,
    reallocs: realloc_keeps_contents,
    zeroes: calloc_is_zero_after_dirty_reuse,
    kept_errno: free_keeps_errno_on_every_path,
    usable_sizes: usable_sizes_depend_on_the_request_alone,
    heaps: explicit_heaps_do_what_the_header_says,
    questions: glibcs_questions_are_answered,
}
