//! Tables on a terminal: quiet lines, figures to the right.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, presets};
use console::Term;

/// An empty table; every column but the first is aligned to the right.
pub(crate) fn new(header: &[String]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// An empty table of words: everything to the left, folded to the terminal's width.
pub(crate) fn text(header: &[String]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    table.set_width(Term::stdout().size_checked().map_or(140, |(_, columns)| columns));
    table
}
