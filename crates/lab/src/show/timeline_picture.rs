//! The picture of a memory timeline: lines over time that are named where they end, the peak and the end marked, and what ran where below.
//!
//! It stands alone, so it has its own colours for light and for dark. Units and axes follow its content: a program of 300 KiB and 40 ms fills it as one
//! of 30 GiB and an hour does.

use crate::show::plot::colour;
use crate::show::quantity;
use std::fmt::Write;

/// A line: milliseconds and bytes, in the order of time.
pub(crate) struct Line {
    /// Its name; the name selects the colour.
    pub(crate) name: &'static str,
    /// Its points; one at least.
    pub(crate) points: Vec<(u64, u64)>,
}

/// The line whose peak and end are marked.
const MARKED: &str = "resident";

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 400.0;
/// The area of the lines: left, right, top, bottom.
const AREA: [f64; 4] = [76.0, 700.0, 58.0, 322.0];
/// Least distance of two names at the right end.
const NAMES_APART: f64 = 16.0;
/// Letters that fit below the picture.
const LETTERS: usize = 118;

const STYLE: &str = "svg{background:#fff;color:#22272e;font-family:system-ui,sans-serif}text{fill:currentColor;font-size:13px}\
    .soft{opacity:.7}.grid{stroke:#d8dde3}.halo{paint-order:stroke;stroke:#fff;stroke-width:4px}\
    @media(prefers-color-scheme:dark){svg{background:#14171b;color:#e6e9ed}.grid{stroke:#363d46}.halo{stroke:#14171b}}";

/// Draws `lines` under `title`; `about` is the command, and then the machine and the date.
pub(crate) fn draw(title: &str, about: [&str; 2], lines: &[Line]) -> String {
    let scale = Scale::of(lines);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\">\
         <style>{STYLE}</style><title>{0}</title><text x=\"16\" y=\"28\" style=\"font-size:17px;font-weight:600\">{0}</text>",
        escape(title)
    );
    svg.push_str(&scale.axes());
    for line in lines {
        let points: Vec<String> =
            line.points.iter().map(|&point| scale.place(point)).map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
        // Writing to a string does not fail.
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
            points.join(" "),
            colour(line.name)
        );
    }
    svg.push_str(&names(lines, &scale));
    if let Some(line) = lines.iter().find(|line| line.name == MARKED) {
        svg.push_str(&marks(line, &scale));
    }
    for (text, y) in about.iter().zip([HEIGHT - 28.0, HEIGHT - 10.0]) {
        let _ = write!(svg, "<text class=\"soft\" x=\"16\" y=\"{y}\">{}</text>", escape(&shortened(text)));
    }
    svg + "</svg>\n"
}

/// From milliseconds and bytes to places in the picture.
struct Scale {
    most_ms: u64,
    most_bytes: u64,
}

impl Scale {
    fn of(lines: &[Line]) -> Self {
        let points = || lines.iter().flat_map(|line| &line.points);
        Self {
            most_ms: points().map(|point| point.0).max().unwrap_or(0).max(1),
            most_bytes: points().map(|point| point.1).max().unwrap_or(0).max(1),
        }
    }

    fn place(&self, (ms, bytes): (u64, u64)) -> [f64; 2] {
        let [left, right, top, bottom] = AREA;
        let part = |value: u64, most: u64| value as f64 / most as f64;
        [left + part(ms, self.most_ms) * (right - left), bottom - part(bytes, self.most_bytes) * (bottom - top)]
    }

    /// Lines at round values, with their labels.
    fn axes(&self) -> String {
        let [left, right, _, bottom] = AREA;
        let mut svg = String::new();
        for bytes in round_values(self.most_bytes, 1024) {
            let y = self.place((0, bytes))[1];
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 8.0,
                y + 4.5,
                plain(&quantity::bytes(bytes as f64))
            );
        }
        for ms in round_values(self.most_ms, 1000) {
            let _ = write!(
                svg,
                "<text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                self.place((ms, 0))[0],
                bottom + 20.0,
                if ms == 0 { "0".into() } else { plain(&quantity::time(ms as f64 * 1e6)) }
            );
        }
        svg
    }
}

/// Round values from 0 to `most`, at most six: 1, 2 or 5 times a power of ten of the unit that suits `most`; units are `step` apart.
fn round_values(most: u64, step: u64) -> impl Iterator<Item = u64> {
    let mut unit = 1;
    while most / unit >= step {
        unit *= step;
    }
    let in_units = most as f64 / unit as f64;
    let tens = 10_f64.powf((in_units / 5.0).log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| in_units / (factor * tens) <= 5.0).unwrap_or(10.0);
    let distance = ((factor * tens * unit as f64).round() as u64).max(1);
    (0..=most / distance).map(move |index| index * distance)
}

/// The names of the lines behind their ends, moved apart where lines end close together.
fn names(lines: &[Line], scale: &Scale) -> String {
    let mut ends: Vec<(f64, &Line)> =
        lines.iter().filter_map(|line| Some((scale.place(*line.points.last()?)[1], line))).collect();
    ends.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut svg = String::new();
    let mut below = f64::MAX;
    for (y, line) in ends {
        let y = y.min(below - NAMES_APART);
        below = y;
        let colour = colour(line.name);
        let name = line.name;
        let _ =
            write!(svg, "<text x=\"{}\" y=\"{:.1}\" style=\"fill:{colour}\">{name}</text>", AREA[1] + 10.0, y + 4.5);
    }
    svg
}

/// Dots at the highest point of a line and at its end, with their values.
fn marks(line: &Line, scale: &Scale) -> String {
    let mut svg = String::new();
    let peak = line.points.iter().copied().max_by_key(|&(ms, bytes)| (bytes, std::cmp::Reverse(ms)));
    for (what, point) in [("peak", peak), ("end", line.points.last().copied())] {
        let Some((ms, bytes)) = point else { continue };
        let [x, y] = scale.place((ms, bytes));
        let anchor = if x > (AREA[0] + AREA[1]) / 2.0 { "end" } else { "start" };
        let _ = write!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{}\"/>\
             <text class=\"halo\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{what} {} at {}</text>",
            colour(line.name),
            y - 9.0,
            quantity::bytes(bytes as f64),
            quantity::time(ms as f64 * 1e6)
        );
    }
    svg
}

/// A figure without insignificant zeroes: `20 MiB`, not `20.0 MiB`.
fn plain(text: &str) -> String {
    let Some((number, unit)) = text.split_once(' ') else { return text.to_owned() };
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}")
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= LETTERS {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(LETTERS - 1).collect::<String>())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident(points: &[(u64, u64)]) -> Line {
        Line { name: MARKED, points: points.to_vec() }
    }

    #[test]
    fn the_axes_have_round_values_in_the_unit_of_the_content() {
        let values = |most, step| round_values(most, step).collect::<Vec<_>>();
        assert_eq!(values(5 << 20, 1024), [0, 1, 2, 3, 4, 5].map(|mib| mib << 20));
        assert_eq!(values(300 << 10, 1024), [0, 100 << 10, 200 << 10, 300 << 10]);
        assert_eq!(values(40, 1000), [0, 10, 20, 30, 40]);
        assert_eq!(values(1, 1000), [0, 1]);
        assert!(
            [3, 999, 1001, 123_456_789, u64::MAX / 4].iter().all(|&most| (2..=6).contains(&values(most, 1024).len()))
        );
    }

    #[test]
    fn peak_and_end_are_marked_and_every_line_is_named() {
        let live = Line { name: "live", points: vec![(0, 1 << 20), (2000, 1 << 20)] };
        let svg = draw("T", ["x & y", "here"], &[resident(&[(0, 0), (1000, 8 << 20), (2000, 1 << 20)]), live]);
        for part in
            ["peak 8.00 MiB at 1.00 s", "end 1.00 MiB at 2.00 s", ">live</text>", ">resident</text>", "x &amp; y"]
        {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
        assert!(svg.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn names_of_lines_that_end_together_do_not_cover_each_other() {
        let lines = ["committed", "resident", "live"].map(|name| Line { name, points: vec![(0, 100)] });
        let scale = Scale::of(&lines);
        let places: Vec<f64> = names(&lines, &scale)
            .split(" y=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next()?.parse().ok())
            .collect();
        assert!(places.windows(2).all(|pair| (pair[0] - pair[1]).abs() >= NAMES_APART - 0.1), "{places:?}");
    }

    #[test]
    fn the_content_fills_the_picture_however_small_it_is() {
        let scale = Scale::of(&[resident(&[(0, 1), (40, 300)])]);
        assert_eq!(scale.place((40, 300)), [AREA[1], AREA[2]]);
    }
}
