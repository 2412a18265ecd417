//! A ratio and its verdict as text.

use crate::measure::statistics::{Ratio, Verdict};

/// The sign for "no difference seen".
pub(crate) const SAME: &str = "≈";

/// `0.71  0.69–0.73`, or the sign for no difference seen.
pub(crate) fn verdict(ratio: &Ratio) -> String {
    match ratio.verdict {
        Verdict::NoDifferenceSeen => SAME.into(),
        Verdict::Less | Verdict::More => format!("{:.2}  {:.2}–{:.2}", ratio.median, ratio.low, ratio.high),
    }
}

/// The same without the interval: `0.71`.
pub(crate) fn short_verdict(ratio: &Ratio) -> String {
    match ratio.verdict {
        Verdict::NoDifferenceSeen => SAME.into(),
        Verdict::Less | Verdict::More => format!("{:.2}", ratio.median),
    }
}

/// What the figures in `rows` are, and what the sign means if it occurs there.
pub(crate) fn legend(rows: &[Vec<String>], figures: &str) -> String {
    let sign = if rows.iter().flatten().any(|cell| cell == SAME) {
        format!("{SAME}: no difference seen; ")
    } else {
        String::new()
    };
    format!(" {sign}figures: {figures}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_shown_with_its_interval_only_where_a_difference_is_claimed() {
        let ratio = |verdict| Ratio { median: 0.714, low: 0.69, high: 0.73, rounds: 8, verdict };
        assert_eq!(verdict(&ratio(Verdict::Less)), "0.71  0.69–0.73");
        assert_eq!(short_verdict(&ratio(Verdict::More)), "0.71");
        assert_eq!(verdict(&ratio(Verdict::NoDifferenceSeen)), SAME);
    }

    #[test]
    fn the_sign_is_explained_where_it_occurs() {
        let rows = |cell: &str| vec![vec!["x".to_owned(), cell.to_owned()]];
        assert_eq!(legend(&rows("0.5"), "medians"), " figures: medians");
        assert_eq!(legend(&rows(SAME), "medians"), " ≈: no difference seen; figures: medians");
    }
}
