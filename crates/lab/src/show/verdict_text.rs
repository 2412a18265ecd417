//! A ratio and its verdict as text.

use crate::measure::statistics::{Ratio, Verdict};

/// The sign for "no difference seen".
pub(crate) const SAME: &str = "≈";

/// Why no difference is claimed although the interval does not include 1: the median is too close to it.
const SMALL: &str = "small";

/// Or the rounds are too few, or vary too much, to tell it from chance.
const CHANCE: &str = "chance?";

/// `0.71  0.69–0.73`; where no difference is claimed the sign, the interval and why: `≈  0.93–1.08`, which includes 1.
pub(crate) fn verdict(ratio: &Ratio) -> String {
    let interval = format!("{:.2}–{:.2}", ratio.low, ratio.high);
    match ratio.verdict {
        Verdict::Less | Verdict::More => format!("{:.2}  {interval}", ratio.median),
        Verdict::NoDifferenceSeen if ratio.includes_one() => format!("{SAME}  {interval}"),
        Verdict::NoDifferenceSeen if ratio.is_small() => format!("{SAME}  {interval} {SMALL}"),
        Verdict::NoDifferenceSeen => format!("{SAME}  {interval} {CHANCE}"),
    }
}

/// The same without the interval: `0.71`.
pub(crate) fn short_verdict(ratio: &Ratio) -> String {
    match ratio.verdict {
        Verdict::NoDifferenceSeen => SAME.into(),
        Verdict::Less | Verdict::More => format!("{:.2}", ratio.median),
    }
}

/// What the figures in `rows` are, and what the signs mean that occur there.
pub(crate) fn legend(rows: &[Vec<String>], figures: &str) -> String {
    let occurs = |is: fn(&str) -> bool| rows.iter().flatten().any(|cell| is(cell));
    let mut text = String::from(" ");
    if occurs(|cell| cell.starts_with(SAME)) {
        text.push_str("≈: no difference seen, because the interval includes 1");
        if occurs(|cell| cell.ends_with(SMALL)) {
            text.push_str(", or (small) the median is within 1 % of it");
        }
        if occurs(|cell| cell.ends_with(CHANCE)) {
            text.push_str(", or (chance?) the rounds are too few or too uneven to tell: raise --rounds");
        }
        text.push_str("; ");
    }
    text + "figures: " + figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(median: f64, interval: [f64; 2], verdict: Verdict) -> Ratio {
        Ratio { median, low: interval[0], high: interval[1], rounds: 8, verdict }
    }

    #[test]
    fn a_ratio_is_shown_with_its_interval_and_what_is_not_claimed_with_the_reason() {
        assert_eq!(verdict(&ratio(0.714, [0.69, 0.73], Verdict::Less)), "0.71  0.69–0.73");
        assert_eq!(short_verdict(&ratio(1.2, [1.1, 1.3], Verdict::More)), "1.20");
        let same = |median, interval| verdict(&ratio(median, interval, Verdict::NoDifferenceSeen));
        assert_eq!(same(1.01, [0.93, 1.08]), "≈  0.93–1.08");
        assert_eq!(same(1.006, [1.001, 1.02]), "≈  1.00–1.02 small");
        assert_eq!(same(1.2, [1.02, 1.4]), "≈  1.02–1.40 chance?");
        assert_eq!(short_verdict(&ratio(1.2, [1.0, 1.4], Verdict::NoDifferenceSeen)), SAME);
    }

    #[test]
    fn the_signs_are_explained_where_they_occur() {
        let rows = |cell: &str| vec![vec!["x".to_owned(), cell.to_owned()]];
        assert_eq!(legend(&rows("0.5"), "medians"), " figures: medians");
        let includes = " ≈: no difference seen, because the interval includes 1";
        assert_eq!(legend(&rows("≈  0.93–1.08"), "medians"), format!("{includes}; figures: medians"));
        assert!(legend(&rows("≈  1.00–1.02 small"), "medians").contains("(small) the median is within 1 %"));
        assert!(legend(&rows("≈  1.02–1.40 chance?"), "medians").contains("raise --rounds"));
    }
}
