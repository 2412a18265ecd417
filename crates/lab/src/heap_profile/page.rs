//! The HTML page of a profile: one file without outside references, light and dark.
//!
//! Tables of who holds memory, now and at the peak, the flame graph, and memory over time if there are several dumps.

use crate::heap_profile::named::NamedProfile;
use crate::heap_profile::usage::Measure;
use crate::heap_profile::{collapsed, flame_graph, table};
use crate::show::html_page::skeleton::{document, escape, section, table as html_table};
use crate::show::{plot, quantity};
use anyhow::Result;

/// Tells the browser to fetch nothing; the flame graph's own script may run.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
                      style-src 'unsafe-inline'; script-src 'unsafe-inline'\">";

/// Most rows of a table.
const MOST_ROWS: usize = 40;

/// A profile, and what it is of.
#[derive(Clone, Copy)]
pub(crate) struct Titled<'a> {
    /// The heading: `At the end`, `At the peak`.
    pub(crate) title: &'static str,
    /// The profile.
    pub(crate) profile: &'a NamedProfile,
}

/// What the page shows.
pub(crate) struct Contents<'a> {
    /// The command, or the files' names.
    pub(crate) of: String,
    /// What holds memory at one moment or two; the first is drawn as a flame graph.
    pub(crate) profiles: Vec<Titled<'a>>,
    /// Which figures are shown.
    pub(crate) measure: Measure,
    /// Live bytes over time: seconds, or numbers of dumps, and bytes. Fewer than two points are not drawn.
    pub(crate) timeline: Vec<(f64, f64)>,
    /// What the horizontal axis of the timeline is.
    pub(crate) timeline_axis: &'static str,
}

/// The page.
///
/// # Errors
/// A picture cannot be drawn.
pub(crate) fn render(contents: &Contents<'_>) -> Result<String> {
    let mut body = String::new();
    if let Some(first) = contents.profiles.first() {
        let title = format!("Bytes {}", contents.measure.name());
        let picture = flame_graph::draw(&title, &collapsed::lines(first.profile, contents.measure))?;
        body.push_str(&first_screen(first, contents.measure));
        if let Some(svg) = picture {
            let note = "Each box is a function, as wide as the memory that it and the functions it called allocated. Click to enlarge, Ctrl-F to search.";
            body.push_str(&section("Flame graph", note, inline(&svg)));
        }
    }
    for other in contents.profiles.iter().skip(1) {
        body.push_str(&first_screen(other, contents.measure));
    }
    if contents.timeline.len() > 1 {
        let points = contents.timeline.iter().map(|&(x, bytes)| (x, bytes / f64::from(1 << 20))).collect();
        let svg = plot::lines("", contents.timeline_axis, "MiB", &[("live".to_owned(), points)], plot::Theme::Page)?;
        body.push_str(&section("Live memory over time", "", &format!("<figure>{svg}</figure>")));
    }
    let subtitle = match contents.profiles.first().map(|first| first.profile.interval) {
        Some(interval) if interval > 1 => {
            format!("{}; estimates from samples, one in {} on average", contents.of, quantity::bytes(interval as f64))
        }
        _ => contents.of.clone(),
    };
    Ok(document(POLICY, ["Who holds memory", &contents.of, &subtitle], "", &body))
}

/// The table of the functions that hold most.
fn first_screen(titled: &Titled<'_>, measure: Measure) -> String {
    let sum = titled.profile.sum().of(measure);
    let rows = table::rows(titled.profile, measure);
    let held: Vec<_> = rows.iter().filter(|row| row.own.bytes != 0).collect();
    let cells = |row: &&table::Row| table::cells(row, sum).iter().map(|cell| escape(cell)).collect::<Vec<_>>();
    let shown: Vec<Vec<String>> = held.iter().take(MOST_ROWS).map(cells).collect();
    let more = held.len().saturating_sub(MOST_ROWS);
    let rest = if more > 0 { format!(" The {more} functions that hold least are left out.") } else { String::new() };
    let note = format!(
        "{} {} in {} blocks.{rest}",
        table::bytes(sum.bytes),
        measure.name(),
        quantity::count(sum.blocks.unsigned_abs())
    );
    section(titled.title, &note, &html_table(&table::header(measure), &shown))
}

/// A picture without the lines that only a file of its own has.
fn inline(svg: &str) -> &str {
    svg.find("<svg").map_or(svg, |start| &svg[start..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap_profile::named::tests::profile;

    #[test]
    fn a_page_has_tables_a_flame_graph_and_a_timeline_and_escapes_names() {
        let (now, peak) = (profile(&[("main;get<int>", 10, 30)]), profile(&[("main;burst", 50, 50)]));
        let titled = |title, profile| Titled { title, profile };
        let contents = Contents {
            of: "a <b>".into(),
            profiles: vec![titled("At the end", &now), titled("At the peak", &peak)],
            measure: Measure::Live,
            timeline: vec![(0.0, 1.0), (1.0, 2.0)],
            timeline_axis: "seconds",
        };
        let page = render(&contents).unwrap();
        for part in [
            "At the end",
            "At the peak",
            "get&lt;int&gt;",
            "burst",
            "a &lt;b&gt;",
            "Live memory over time",
            "Flame graph",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("<?xml") && !page.contains("get<int>"));
        assert!(!render(&Contents { timeline: vec![], ..contents }).unwrap().contains("over time"));
    }
}
