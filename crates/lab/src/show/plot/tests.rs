use super::*;

fn series(names: &[&str]) -> Vec<Series> {
    names.iter().map(|&name| (name.to_owned(), vec![(0.0, 1.0), (1.0, 2.0)])).collect()
}

#[test]
fn an_allocator_keeps_its_colour_when_it_is_measured_against_itself() {
    assert_eq!(colour("jemalloc again"), colour("jemalloc"));
    assert_ne!(colour("jemalloc"), colour("mimalloc"));
    assert_eq!(colour("mine"), colour("mine"));
}

#[test]
fn labels_have_no_insignificant_digits() {
    assert_eq!([tick(2.0), tick(2.5), tick(0.25)], ["2", "2.5", "0.25"]);
    assert_eq!([power_of_ten(3.0), power_of_ten(4.0), power_of_ten(0.0)], ["1 µs", "10 µs", "1 ns"]);
}

#[test]
fn a_picture_that_stands_alone_has_a_legend_and_fixed_colours_and_one_on_the_page_has_neither() {
    let alone = lines("title", "x", "y", &series(&["live"]), Theme::Light).unwrap();
    assert!(alone.contains("live\n</text>") && alone.contains("#ffffff") && !alone.contains("var(--"), "{alone}");
    let on_page = lines("title", "x", "y", &series(&["live"]), Theme::Page).unwrap();
    assert!(!on_page.contains("live\n</text>") && on_page.contains("var(--ink)"), "{on_page}");
    assert!([alone, on_page].iter().all(|svg| !svg.contains("#010203") && !svg.contains("#040506")));
}

#[test]
fn a_plot_without_points_and_one_of_a_single_percentile_are_drawn() {
    lines("title", "x", "y", &[], Theme::Page).unwrap();
    percentiles("title", &["p50".to_owned()], &series(&["a"]), Theme::Page).unwrap();
}
