use super::*;

#[test]
fn figures_have_three_digits_and_a_unit() {
    assert_eq!(time(9.876), "9.88 ns");
    assert_eq!(time(1_234_567.0), "1.23 ms");
    assert_eq!(time(999.9), "1.00 µs");
    assert_eq!(bytes(2_621_440.0), "2.50 MiB");
    assert_eq!(bytes(123.0), "123 B");
    assert_eq!(count(1_234_567), "1 234 567");
    assert_eq!(count(12), "12");
    assert_eq!(
        (figure(10.0), figure(1234.0), figure(1.894), figure(83.44)),
        ("10".into(), "1 234".into(), "1.89".into(), "83.4".into())
    );
}

#[test]
fn a_figure_that_rounds_up_to_a_power_of_ten_keeps_three_digits() {
    assert_eq!([digits(9.994), digits(9.996), digits(99.94), digits(99.96)], ["9.99", "10.0", "99.9", "100"]);
}

#[test]
fn nothing_is_shown_without_digits_and_a_noun_follows_its_number() {
    assert_eq!((time(0.0), bytes(0.0)), ("0 ns".into(), "0 B".into()));
    assert_eq!(
        (counted(1, "process", "processes"), counted(0, "process", "processes")),
        ("1 process".into(), "0 processes".into())
    );
    assert_eq!(counted(1200, "was", "were"), "1 200 were");
}

#[test]
fn percentiles_have_their_usual_names() {
    assert_eq!([percentile(50.0), percentile(99.999), percentile(100.0)], ["p50", "p99.999", "slowest"]);
}
