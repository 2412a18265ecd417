//! The figures as OpenMetrics 1.0 text, which Prometheus scrapes.
//!
//! A family has `# TYPE`, `# UNIT` if it has one, `# HELP`, and its samples, all together; the text ends in `# EOF`. The meanings in the table of figures
//! have no character that would need an escape.

use super::Stats;
use super::figures::{Figure, Kind, Row};
use super::rows::{ClassStats, DirtyAge, HeapStats};
use core::fmt::{self, Display, Formatter};

/// The text. See the module header.
pub(super) struct OpenMetrics<'a> {
    pub(super) stats: Stats,
    pub(super) classes: &'a [ClassStats],
    pub(super) heaps: &'a [HeapStats],
}

/// What its samples are told apart by.
trait Labelled: Row {
    /// Writes the labels in braces; nothing if there are none.
    fn write_labels(&self, f: &mut Formatter<'_>) -> fmt::Result;

    /// Whether there is anything to say of it.
    fn is_used(&self) -> bool {
        true
    }
}

impl Labelled for Stats {
    fn write_labels(&self, _: &mut Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Labelled for DirtyAge {
    fn write_labels(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{age=\"{}\"}}", self.age)
    }
}

impl Labelled for ClassStats {
    fn write_labels(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.block_bytes == 0 {
            f.write_str("{size=\"large\"}")
        } else {
            write!(f, "{{size=\"{}\"}}", self.block_bytes)
        }
    }

    fn is_used(&self) -> bool {
        self.has_figures()
    }
}

impl Labelled for HeapStats {
    fn write_labels(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{heap=\"{}\",kind=\"{}\"}}", self.number, self.kind.name())
    }
}

impl Display for OpenMetrics<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { stats, classes, heaps } = *self;
        f.write_str("# TYPE freestone_build info\n# HELP freestone_build The library\n")?;
        writeln!(f, "freestone_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))?;
        write_all(f, "", &[stats])?;
        write_all(f, "dirty_age_", &dirty_ages(&stats))?;
        write_all(f, "class_", classes)?;
        write_all(f, "heap_", heaps)?;
        f.write_str("# EOF\n")
    }
}

/// The ages of the dirty memory.
fn dirty_ages(stats: &Stats) -> [DirtyAge; 4] {
    let [quarter, half, whole, longer] = stats.dirty_by_age;
    [("0-0.25", quarter), ("0.25-0.5", half), ("0.5-1", whole), ("1-", longer)]
        .map(|(age, bytes)| DirtyAge { age, bytes })
}

fn write_all<T: Labelled>(f: &mut Formatter<'_>, prefix: &str, rows: &[T]) -> fmt::Result {
    for (at, figure) in T::FIGURES.iter().enumerate() {
        let (name, suffix) = (figure.name(), write_head(f, prefix, figure)?);
        for row in rows.iter().filter(|row| row.is_used()) {
            if let Some(number) = row.value(at) {
                write_name(f, [prefix, name, suffix])?;
                row.write_labels(f)?;
                write_number(f, number)?;
            }
        }
    }
    Ok(())
}

/// Writes the parts of a sample's name. As the next two, one function for rows of all kinds.
#[inline(never)]
fn write_name(f: &mut Formatter<'_>, [prefix, name, suffix]: [&str; 3]) -> fmt::Result {
    write!(f, "freestone_{prefix}{name}{suffix}")
}

/// Writes what a sample has behind its labels.
#[inline(never)]
fn write_number(f: &mut Formatter<'_>, number: u64) -> fmt::Result {
    writeln!(f, " {number}")
}

/// Writes what a family of figures is. Returns the end of their names.
fn write_head(f: &mut Formatter<'_>, prefix: &str, figure: &Figure) -> Result<&'static str, fmt::Error> {
    let (name, meaning) = (figure.name(), figure.meaning());
    let (kind, suffix) = match figure.kind {
        Kind::Gauge => ("gauge", ""),
        Kind::Counter => ("counter", "_total"),
    };
    writeln!(f, "# TYPE freestone_{prefix}{name} {kind}")?;
    if name.ends_with("bytes") {
        writeln!(f, "# UNIT freestone_{prefix}{name} bytes")?;
    }
    writeln!(f, "# HELP freestone_{prefix}{name}{meaning}")?;
    Ok(suffix)
}
