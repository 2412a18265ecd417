//! Line plots as SVG.
//!
//! A plot is drawn with placeholder colours, which a theme then replaces: with fixed colours for a picture that stands alone, or with the
//! page's CSS variables, so that the same picture works in light and dark. Each allocator and each kind of memory has the same colour
//! everywhere. A picture that stands alone has a legend; on the page, the page adds one.

use crate::show::quantity;
use anyhow::{Result, anyhow};
use plotters::prelude::*;

/// Where the finished picture is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Alone, on white.
    Light,
    /// On the page, with the colours of its CSS variables.
    Page,
    /// On the page, for screens as narrow as a telephone's.
    NarrowPage,
}

impl Theme {
    fn size(self) -> (u32, u32) {
        if self == Self::NarrowPage { (360, 300) } else { (760, 300) }
    }

    /// The size of the labels on the axes: a narrow screen shows a picture at less than its size.
    fn size_of_labels(self) -> i32 {
        if self == Self::NarrowPage { 17 } else { 13 }
    }

    /// The title in the picture; on a narrow screen it has no room there, and is below.
    fn title(self, title: &str) -> &str {
        if self == Self::NarrowPage { "" } else { title }
    }

    /// The most labels of the horizontal axis.
    fn most_labels(self) -> usize {
        if self == Self::NarrowPage { 5 } else { 10 }
    }
}

/// A line: its name, and its points in the units of the axes.
pub(crate) type Series = (String, Vec<(f64, f64)>);

const INK: RGBColor = RGBColor(1, 2, 3);
const FAINT: RGBColor = RGBColor(4, 5, 6);
/// Position of the first entry of the legend.
const LEGEND: (i32, i32) = (66, 6);
/// Distance between two entries of the legend.
const LEGEND_STEP: i32 = 90;
/// Height of the legend.
const LEGEND_HEIGHT: u32 = 16;

/// Colours of all other names. The name selects the colour, so that it is the same on every page.
const OTHERS: [&str; 8] = ["#4f6d7a", "#a0522d", "#009e9e", "#8a9a00", "#c46be0", "#5b7fff", "#d98200", "#4caf50"];

/// The colour of an allocator, or of a kind of memory, as CSS.
pub(crate) fn colour(allocator: &str) -> &'static str {
    match allocator.trim_end_matches(" again") {
        "system" => "#7f8c99",
        "freestone" => "#e4572e",
        "mimalloc" => "#2e86ab",
        "mimalloc2" => "#74b3ce",
        "jemalloc" => "#7b5ea7",
        "snmalloc" => "#3a9d5d",
        "rpmalloc" => "#c9a227",
        "tcmalloc" => "#b8577e",
        "resident" => "#e4572e",
        "live" => "#3a9d5d",
        "dirty" => "#c9a227",
        "committed" => "#a9b4bf",
        other => OTHERS[other.bytes().fold(0, |sum, byte| sum * 19 % 8191 + usize::from(byte)) % OTHERS.len()],
    }
}

/// A plot of lines over linear axes that start at 0.
///
/// # Errors
/// The plot cannot be drawn.
pub(crate) fn lines(title: &str, x_name: &str, y_name: &str, series: &[Series], theme: Theme) -> Result<String> {
    let points = || series.iter().flat_map(|(_, points)| points);
    let right = points().map(|point| point.0).fold(0.0, f64::max).max(1e-9);
    let top = points().map(|point| point.1).fold(0.0, f64::max).max(1e-9) * 1.05;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, theme.size()).into_drawing_area();
        let for_legend = if theme == Theme::Light { LEGEND_HEIGHT } else { 0 };
        let mut chart = ChartBuilder::on(&area)
            .caption(theme.title(title), ("sans-serif", 17, &INK))
            .margin(10)
            .margin_top(10 + for_legend)
            .x_label_area_size(10 + 2 * theme.size_of_labels())
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..right, 0.0..top)
            .map_err(|error| anyhow!("the plot '{title}' could not be laid out: {error}"))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(FAINT)
            .x_labels(theme.most_labels())
            .x_desc(x_name)
            .y_desc(y_name)
            .x_label_formatter(&|value| tick(*value))
            .y_label_formatter(&|value| tick(*value))
            .label_style(("sans-serif", theme.size_of_labels(), &INK))
            .draw()
            .map_err(|error| anyhow!("the axes of '{title}' could not be drawn: {error}"))?;
        for (at, (name, points)) in series.iter().enumerate() {
            let line = LineSeries::new(points.iter().copied(), rgb(colour(name)).stroke_width(2));
            chart.draw_series(line).map_err(|error| anyhow!("the line {name} could not be drawn: {error}"))?;
            if theme == Theme::Light {
                let place = (LEGEND.0 + LEGEND_STEP * at as i32, LEGEND.1);
                let style = ("sans-serif", 13).into_font().color(&rgb(colour(name)));
                area.draw_text(name, &style, place)
                    .map_err(|error| anyhow!("the name of line {name} could not be drawn: {error}"))?;
            }
        }
        area.present().map_err(|error| anyhow!("the plot '{title}' could not be finished: {error}"))?;
    }
    Ok(themed(&svg, theme))
}

/// A plot of base-10 logarithms of nanoseconds over labelled positions on the horizontal axis.
///
/// # Errors
/// The plot cannot be drawn.
pub(crate) fn percentiles(title: &str, labels: &[String], series: &[Series], theme: Theme) -> Result<String> {
    let highest = series.iter().flat_map(|(_, points)| points).map(|point| point.1).fold(1.0, f64::max).ceil();
    let right = labels.len().saturating_sub(1).max(1) as f64;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, theme.size()).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .caption(theme.title(title), ("sans-serif", 17, &INK))
            .margin(10)
            .margin_right(36)
            .x_label_area_size(10 + 2 * theme.size_of_labels())
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..right, 1.0..highest)
            .map_err(|error| anyhow!("the plot '{title}' could not be laid out: {error}"))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(FAINT)
            .x_labels(labels.len().min(theme.most_labels()))
            .y_labels(highest as usize + 1)
            .x_label_formatter(&|place| labels.get(place.round() as usize).cloned().unwrap_or_default())
            .y_label_formatter(&|power| power_of_ten(*power))
            .label_style(("sans-serif", theme.size_of_labels(), &INK))
            .draw()
            .map_err(|error| anyhow!("the axes of '{title}' could not be drawn: {error}"))?;
        for (name, points) in series {
            let line = LineSeries::new(points.iter().copied(), rgb(colour(name)).stroke_width(2));
            chart.draw_series(line).map_err(|error| anyhow!("the line {name} could not be drawn: {error}"))?;
        }
        area.present().map_err(|error| anyhow!("the plot '{title}' could not be finished: {error}"))?;
    }
    Ok(themed(&svg, theme))
}

/// The label of a power of ten of nanoseconds: `1 µs`, `10 µs`.
fn power_of_ten(power: f64) -> String {
    let text = quantity::time(10_f64.powf(power.round()));
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = number.parse().map_or_else(|_| number.to_owned(), tick);
    format!("{number} {unit}")
}

/// The label of a number, without trailing zeroes.
fn tick(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn rgb(css: &str) -> RGBColor {
    let part = |at: usize| u8::from_str_radix(&css[at..at + 2], 16).unwrap_or(0);
    RGBColor(part(1), part(3), part(5))
}

fn themed(svg: &str, theme: Theme) -> String {
    let (ink, faint) = match theme {
        Theme::Light => ("#22272e", "#d8dde3"),
        Theme::Page | Theme::NarrowPage => ("var(--ink)", "var(--line)"),
    };
    let svg = svg.replace("#010203", ink).replace("#040506", faint);
    match theme {
        Theme::Light => svg.replacen('>', "><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>", 1),
        Theme::Page | Theme::NarrowPage => svg,
    }
}

#[cfg(test)]
mod tests;
