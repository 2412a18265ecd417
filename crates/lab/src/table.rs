//! Tables on a terminal: quiet lines, figures to the right.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// An empty table; every column but the first is aligned to the right.
pub(crate) fn new(header: &[String]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
