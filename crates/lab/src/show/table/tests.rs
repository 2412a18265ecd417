use super::*;

#[test]
fn a_table_too_wide_becomes_several_with_the_same_first_columns() {
    // Each column takes its width and the gap: 13 for the first, 8 for the others.
    let widths = [10, 5, 5, 5, 5];
    assert_eq!(parts(&widths, 1, 45), [vec![0, 1, 2, 3, 4]]);
    assert_eq!(parts(&widths, 1, 44), [vec![0, 1, 2, 3], vec![0, 4]]);
    assert_eq!(parts(&widths, 2, 30), [vec![0, 1, 2], vec![0, 1, 3], vec![0, 1, 4]]);
    assert_eq!(parts(&widths, 1, 4), [vec![0, 1], vec![0, 2], vec![0, 3], vec![0, 4]], "a column is never left out");
}

#[test]
fn what_was_planned_is_as_wide_as_what_is_printed() {
    let words = |row: &[&str]| row.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let (header, row) =
        (words(&["", "system\n(glibc 2.36)", "µ"]), words(&["random_mixed", "1.0 µs", "0.71  0.69–0.73"]));
    let planned: usize = widths(&header, std::slice::from_ref(&row)).iter().map(|width| width + GAP).sum();
    let mut table = new(&header);
    table.add_row(row);
    let printed = table.to_string().lines().map(console::measure_text_width).max();
    assert!(printed.is_some_and(|printed| printed <= planned && planned - printed < GAP), "{printed:?} of {planned}");
}

#[test]
fn text_without_room_for_columns_is_a_list_that_names_what_it_lists() {
    let mut table = text(&["option", "value", "effect"].map(str::to_owned));
    table.add_row(["thp", "", "huge pages\nor none"].map(str::to_owned));
    table.add_row(vec!["limit".to_owned(), "5".to_owned(), "less".to_owned()]);
    assert_eq!(table.as_list(), "thp\n  effect: huge pages\n    or none\nlimit\n  value: 5\n  effect: less");
    assert!(table.in_columns().to_string().contains("huge pages"));
}
