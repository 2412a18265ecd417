//! Statistics for monitoring, as C programs get them.

mod harness;

use harness::run_everywhere;

#[test]
fn figures_are_written_as_open_metrics_and_as_json() {
    run_everywhere("stats.c", "formats");
}

#[test]
fn an_unknown_format_a_writer_that_refuses_and_a_short_structure_are_told_apart() {
    run_everywhere("stats.c", "refusals");
}

#[test]
fn an_explicit_heaps_figures_are_exact_whichever_thread_frees() {
    run_everywhere("stats.c", "heap_stats");
}

#[test]
fn malloc_info_has_the_elements_that_readers_of_glibcs_look_for() {
    run_everywhere("stats.c", "malloc_info");
}

#[test]
fn figures_that_are_written_while_eight_threads_allocate_add_up() {
    run_everywhere("stats.c", "adds_up");
}
