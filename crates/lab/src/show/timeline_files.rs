//! Writes a memory timeline as a CSV table and as a picture.

use crate::process::memory_timeline::Row;
use crate::show::timeline_picture::{self, Line};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes `rows` as CSV, and a picture of them, with `about`, which says what ran where; returns the names of both files. If `file` ends in
/// `.svg` it is the picture, and the table has the same name ending in `.csv`; otherwise `file` is the table, and the picture has `.svg` appended.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write(rows: &[Row], about: [&str; 2], file: &Path) -> Result<[PathBuf; 2]> {
    let [table, picture] = names(file);
    fs::write(&table, csv(rows)).with_context(|| format!("timeline {} cannot be written", table.display()))?;
    let svg = timeline_picture::draw("Memory over time, all processes together", about, &lines_of(rows));
    fs::write(&picture, svg).with_context(|| format!("picture {} cannot be written", picture.display()))?;
    Ok([table, picture])
}

/// The names of the table and the picture.
fn names(file: &Path) -> [PathBuf; 2] {
    if file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
        return [file.with_extension("csv"), file.to_path_buf()];
    }
    let mut picture = file.as_os_str().to_owned();
    picture.push(".svg");
    [file.to_path_buf(), picture.into()]
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from("milliseconds,rss_bytes,live_bytes,dirty_bytes,committed_bytes\n");
    for Row { ms, rss_bytes, heap } in rows {
        // Writing to a string does not fail.
        let _ = match heap {
            Some(heap) => {
                writeln!(text, "{ms},{rss_bytes},{},{},{}", heap.live_bytes, heap.dirty_bytes, heap.committed_bytes)
            }
            None => writeln!(text, "{ms},{rss_bytes},,,"),
        };
    }
    text
}

/// The lines of the picture; those of the library only if it reported anything.
fn lines_of(rows: &[Row]) -> Vec<Line> {
    let line = |name: &'static str, of: &dyn Fn(&Row) -> Option<u64>| Line {
        name,
        points: rows.iter().filter_map(|row| Some((row.ms, of(row)?))).collect(),
    };
    let lines = [
        line("committed", &|row| row.heap.map(|heap| heap.committed_bytes)),
        line("resident", &|row| Some(row.rss_bytes)),
        line("live", &|row| row.heap.map(|heap| heap.live_bytes)),
        line("dirty", &|row| row.heap.map(|heap| heap.dirty_bytes)),
    ];
    lines.into_iter().filter(|line| !line.points.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::memory_timeline::HeapBytes;

    fn row(ms: u64, heap: Option<HeapBytes>) -> Row {
        Row { ms, rss_bytes: 4096, heap }
    }

    fn lines(rows: &[Row]) -> Vec<String> {
        lines_of(rows).into_iter().map(|line| line.name.to_owned()).collect()
    }

    #[test]
    fn without_the_library_the_resident_size_stands_alone() {
        let rows = [row(0, None), row(50, None)];
        assert_eq!(csv(&rows).lines().last(), Some("50,4096,,,"));
        assert_eq!(lines(&rows), ["resident"]);
    }

    #[test]
    fn the_figures_of_the_library_follow_the_resident_size() {
        let heap = HeapBytes { live_bytes: 1, dirty_bytes: 2, committed_bytes: 3 };
        let rows = [row(0, None), row(50, Some(heap))];
        assert_eq!(csv(&rows).lines().last(), Some("50,4096,1,2,3"));
        assert_eq!(lines(&rows), ["committed", "resident", "live", "dirty"]);
    }

    #[test]
    fn the_picture_is_beside_the_table_whichever_is_named() {
        let text = |file: &str| names(Path::new(file)).map(|name| name.to_string_lossy().into_owned());
        assert_eq!(text("a/memory.csv"), ["a/memory.csv", "a/memory.csv.svg"]);
        assert_eq!(text("memory"), ["memory", "memory.svg"]);
        assert_eq!(text("memory.svg"), ["memory.csv", "memory.svg"]);
    }
}
