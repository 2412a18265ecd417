//! The document around the sections: title, style for light and dark, tables, and the escaping that all text goes through.

use crate::measure::ranking;
use crate::measure::summary::Summary;
use crate::results::file_header::Header;
use crate::show::{command_line, origin, plot};
use std::ffi::OsString;

/// The style sheet. Colours are variables, so that pictures and text change together; it covers print and small screens.
const STYLE: &str = include_str!("page.css");

/// Tells the browser to fetch nothing, whatever a results file may contain.
pub(super) const POLICY: &str =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">";

/// The whole document around `body`.
pub(super) fn whole(summary: &Summary, header: &Header, body: &str) -> String {
    let names: Vec<&String> = summary.allocators().iter().take(1).chain(ranking::compared(summary)).collect();
    let listed = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let answer = ranking::answer(summary).unwrap_or_else(|| "Memory allocators, measured".into());
    let title = [&answer, &listed, &origin::of(&header.machine, header.started_unix)];
    document(POLICY, title.map(String::as_str), &legend(summary, names), body)
}

/// A document with a heading, a title for the browser's tab, and a line below the heading; `after_heading` and `body` are HTML.
pub(crate) fn document(policy: &str, title: [&str; 3], after_heading: &str, body: &str) -> String {
    let [heading, tab, subtitle] = title.map(escape);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">{policy}\
         <title>Freestone lab: {tab}</title><style>{STYLE}</style></head>\n<body><header><p class=\"mark\">Freestone lab</p>\
         <h1>{heading}</h1><p class=\"sub\">{subtitle}</p>{after_heading}</header>\n<main>{body}</main></body></html>\n"
    )
}

/// What every picture says below it, so that it can be shown alone: the command, the machine and the date.
pub(super) struct Origin {
    command: String,
    place: String,
}

impl Origin {
    /// The origin of a file's figures.
    pub(super) fn of(header: &Header) -> Self {
        let mut words: Vec<OsString> = header.command.iter().map(OsString::from).collect();
        if let Some(first) = words.first_mut() {
            *first = "freestone".into();
        }
        Self { command: command_line::quoted(&words), place: origin::of(&header.machine, header.started_unix) }
    }

    /// The caption of a picture with this title.
    pub(super) fn caption(&self, title: &str) -> String {
        let [title, command, place] = [title, &self.command, &self.place].map(escape);
        format!("<figcaption>{title} · <code>{command}</code> · {place}</figcaption>")
    }
}

/// The legend: allocators with their colours.
pub(super) fn legend<'a>(summary: &Summary, names: impl IntoIterator<Item = &'a String>) -> String {
    let item = |name: &String| {
        format!("<li><i style=\"background:{}\"></i>{}</li>", plot::colour(name), escape(&summary.label(name)))
    };
    format!("<ul class=\"legend\">{}</ul>", names.into_iter().map(item).collect::<String>())
}

/// A section with a heading; empty if it has no content.
pub(crate) fn section(title: &str, note: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    let note = if note.is_empty() { String::new() } else { format!("<p class=\"note\">{}</p>", escape(note)) };
    format!("<section><h2>{}</h2>{note}{content}</section>\n", escape(title))
}

/// Most columns that a screen can show; a table with more is transposed.
const MOST_COLUMNS: usize = 14;

/// A table of cells that are already HTML.
pub(crate) fn table(header: &[String], rows: &[Vec<String>]) -> String {
    if header.len() > MOST_COLUMNS && rows.len() < MOST_COLUMNS {
        let transposed = |column: usize| {
            std::iter::once(&header[column]).chain(rows.iter().map(move |row| &row[column])).cloned().collect()
        };
        let mut lines: Vec<Vec<String>> = (0..header.len()).map(transposed).collect();
        let header = lines.remove(0);
        return table(&header, &lines);
    }
    let head: String = header.iter().map(|cell| format!("<th>{cell}</th>")).collect();
    let row = |cells: &Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        format!("<tr>{cells}</tr>")
    };
    let body: String = rows.iter().map(row).collect();
    format!("<div class=\"wide\"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")
}

/// The text with the characters escaped that have a meaning in HTML: safe between tags and in attributes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
