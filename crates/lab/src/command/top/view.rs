//! The screen: memory over time, rates, and a table; made from a view's state alone.
//!
//! ```text
//!  freestone top  4711 redis-server  2 heaps                        a line
//!  committed  4.2 MiB ▁▂▄▆█   …                                      six lines; all curves have the scale of the first
//!  allocations 1.2 M/s   frees …                                    two lines
//!  [Size classes]  Threads                                          the table, as far as there is room
//!  F1Help  TabOther  …                                              a line
//! ```

use super::keys;
use super::view_state::{COLUMNS, Row as TableRow, Tab, ViewState};
use crate::show::quantity;
use freestone::Stats;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Sparkline, Table};

/// A part of memory, and the colour of its curve.
#[derive(Clone, Copy)]
struct Part {
    name: &'static str,
    figure: fn(&Stats) -> u64,
    colour: Color,
}

/// The parts in the order of the screen.
const PARTS: [Part; 6] = [
    Part { name: "committed", figure: |stats| stats.committed, colour: Color::White },
    Part { name: "live", figure: |stats| stats.live, colour: Color::Green },
    Part { name: "cached", figure: |stats| stats.cached, colour: Color::Cyan },
    Part { name: "fragmented", figure: |stats| stats.fragmented, colour: Color::Yellow },
    Part { name: "dirty", figure: |stats| stats.dirty, colour: Color::Magenta },
    Part { name: "metadata", figure: |stats| stats.metadata, colour: Color::Blue },
];

/// Columns that a name, a figure and a gap need before a curve.
const LABEL: u16 = 11;
const FIGURE: u16 = 10;

/// A table's columns are so wide, but for the first, which has the rest.
const COLUMN: u16 = 9;
/// The first column is at least so wide.
const FIRST_COLUMN: u16 = 10;

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const BAR: Style = Style::new().fg(Color::Black).bg(Color::Cyan);

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, view: &ViewState) {
    let [top, parts, rates, table, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(PARTS.len() as u16),
        Constraint::Length(2),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_title(frame, top, view);
    match &view.shown {
        Some(state) => {
            draw_parts(frame, parts, view, &state.stats);
            draw_rates(frame, rates, view, &state.stats);
            draw_table(frame, table, view);
        }
        None => frame.render_widget(Paragraph::new("Waiting for the first figures …"), parts),
    }
    draw_keys(frame, bottom);
    if view.has_help {
        draw_help(frame);
    }
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, view: &ViewState) {
    let mut spans = vec![Span::styled("freestone top", STRONG), Span::raw(format!("  {}", view.title))];
    if let Some(end) = &view.end {
        spans.push(Span::styled(format!("  {end}"), STRONG.fg(Color::Red)));
    }
    if view.is_paused {
        spans.push(Span::styled("  PAUSED", STRONG.fg(Color::Yellow)));
    }
    if let Some(state) = &view.shown {
        let heaps = state.n_heaps;
        spans.push(Span::raw(format!("  {heaps} heap{}", if heaps == 1 { "" } else { "s" })));
    }
    frame.render_widget(Line::from(spans), area);
}

fn draw_parts(frame: &mut Frame<'_>, area: Rect, view: &ViewState, stats: &Stats) {
    let peak = |figure: fn(&Stats) -> u64, width: u16| view.sampler.series(width.into(), figure).into_iter().max();
    let curve_width = area.width.saturating_sub(LABEL + FIGURE + 1);
    let scale = peak(PARTS[0].figure, curve_width).unwrap_or(0).max(1);
    let lines = Layout::vertical([Constraint::Length(1); PARTS.len()]).split(area);
    for (Part { name, figure, colour }, line) in PARTS.into_iter().zip(lines.iter()) {
        let [label, number, _, curve] = Layout::horizontal([
            Constraint::Length(LABEL),
            Constraint::Length(FIGURE),
            Constraint::Length(1),
            Constraint::Length(curve_width),
        ])
        .areas(*line);
        frame.render_widget(Line::styled(name, Style::new().fg(colour)), label);
        frame.render_widget(Line::styled(quantity::bytes(figure(stats) as f64), STRONG).right_aligned(), number);
        let values = view.sampler.series(curve_width.into(), figure);
        frame.render_widget(Sparkline::default().data(&values).max(scale).style(Style::new().fg(colour)), curve);
    }
}

fn draw_rates(frame: &mut Frame<'_>, area: Rect, view: &ViewState, stats: &Stats) {
    let rates = view.sampler.rates();
    let remote = if rates.frees > 0.0 { 100.0 * rates.remote_frees / rates.frees } else { 0.0 };
    let per_second = |rate: f64| format!("{}/s", short(rate));
    let bytes_per_second = |rate: f64| format!("{}/s", quantity::bytes(rate));
    let lines = [
        vec![
            ("alloc ", per_second(rates.allocations)),
            ("  free ", per_second(rates.frees)),
            ("  remote ", format!("{remote:.0} %")),
            ("  allocations ", quantity::count(stats.n_allocations)),
            ("  resident ", quantity::bytes(stats.resident() as f64)),
        ],
        vec![
            ("fresh ", bytes_per_second(rates.fresh)),
            ("  purged ", bytes_per_second(rates.purged)),
            ("  peak live ", quantity::bytes(stats.peak_live as f64)),
            ("  live in 4 KiB ", quantity::bytes(stats.density() as f64)),
        ],
    ];
    let lines = lines.map(|pairs| {
        Line::from_iter(pairs.into_iter().flat_map(|(name, value)| [Span::raw(name), Span::styled(value, STRONG)]))
    });
    frame.render_widget(Paragraph::new(lines.to_vec()), area);
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, view: &ViewState) {
    let [tabs, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let name = |tab: Tab, text: &'static str| Span::styled(text, if view.tab == tab { BAR } else { Style::new() });
    let unlisted = view.shown.as_ref().map_or(0, |state| state.n_heaps.saturating_sub(state.n_heap_rows as u64));
    let note = if unlisted > 0 { format!(" {} more have no row", quantity::count(unlisted)) } else { String::new() };
    let line = [
        name(Tab::Classes, " Size classes "),
        Span::raw(" "),
        name(Tab::Heaps, " Threads and heaps "),
        Span::raw(note),
    ];
    frame.render_widget(Line::from_iter(line), tabs);
    let n_columns = (usize::from(body.width.saturating_sub(FIRST_COLUMN) / (COLUMN + 1)) + 1).min(COLUMNS[0].len());
    let (sorted_by, is_reversed) = view.order[view.tab as usize];
    let header = COLUMNS[view.tab as usize].iter().take(n_columns).enumerate().map(|(column, &name)| {
        let is_rising = (column == 0) != is_reversed;
        let marked =
            if column == sorted_by { format!("{name}{}", if is_rising { "△" } else { "▽" }) } else { name.into() };
        aligned(marked, column)
    });
    let rows = view.rows();
    let widths = (0..n_columns)
        .map(|column| if column == 0 { Constraint::Min(FIRST_COLUMN) } else { Constraint::Length(COLUMN) });
    let table = Table::new(rows.iter().skip(view.first).map(|row| line_of(row, view.tab, n_columns)), widths)
        .header(Row::new(header).style(STRONG));
    frame.render_widget(table, body);
}

/// The first column is text, the others are numbers.
fn aligned(text: String, column: usize) -> Cell<'static> {
    let line = Line::raw(text);
    Cell::new(if column == 0 { line } else { line.right_aligned() })
}

fn line_of(row: &TableRow, tab: Tab, n_columns: usize) -> Row<'static> {
    let is_bytes = |column: usize| match tab {
        Tab::Classes => [1, 3].contains(&column),
        Tab::Heaps => [1, 2, 3].contains(&column),
    };
    Row::new((0..n_columns).map(|column| {
        let value = row.values[column];
        let text = match column {
            0 => row.name.clone(),
            _ if is_bytes(column) => quantity::bytes(value),
            _ => short(value),
        };
        aligned(text, column)
    }))
}

/// A count in at most six characters.
fn short(value: f64) -> String {
    match value {
        small if small < 9999.5 => format!("{small:.0}"),
        _ if value < 999.5e3 => format!("{} k", quantity::digits(value / 1e3)),
        _ if value < 999.5e6 => format!("{} M", quantity::digits(value / 1e6)),
        _ => format!("{} G", quantity::digits(value / 1e9)),
    }
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect) {
    let keys = [("F1", "Help "), ("Tab", "Table "), ("F6", "Sort "), ("Spc", "Pause "), ("F10", "Quit ")];
    frame.render_widget(
        Line::from_iter(keys.into_iter().flat_map(|(key, what)| [Span::raw(key), Span::styled(what, BAR)])),
        area,
    );
}

fn draw_help(frame: &mut Frame<'_>) {
    let whole = frame.area();
    let width = whole.width.min(76);
    let lines: Vec<_> = if width == 76 {
        keys::HELP.iter().map(|(keys, what)| Line::raw(format!("{keys:<15} {what}"))).collect()
    } else {
        keys::HELP
            .iter()
            .flat_map(|(keys, what)| [Line::styled(*keys, STRONG), Line::raw(format!("  {what}"))])
            .collect()
    };
    let height = (lines.len() as u16 + 2).min(whole.height);
    let area = Rect { x: (whole.width - width) / 2, y: (whole.height - height) / 2, width, height };
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" Keys ")), area);
}

#[cfg(test)]
mod tests;
