//! What `freestone profile` prints and writes.

use crate::heap_profile::named::NamedProfile;
use crate::heap_profile::page::{self, Contents, Titled};
use crate::heap_profile::usage::Measure;
use crate::heap_profile::{collapsed, flame_graph, pprof_file, table};
use crate::show::{quantity, table as terminal_table};
use anyhow::{Context, Result};
use serde_json::json;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The options of every form of the command.
#[derive(clap::Args)]
pub(super) struct Output {
    /// Also write NAME.pb.gz (for `go tool pprof`), NAME.folded (collapsed stacks), NAME.svg (flame graph) and NAME.html (all of it)
    #[arg(short = 'o', long = "out", value_name = "NAME")]
    name: Option<PathBuf>,
    /// Which figures to show
    #[arg(long, value_enum, default_value_t = Measure::Live)]
    measure: Measure,
    /// Rows of the table; 0 for all
    #[arg(long, default_value_t = 20)]
    rows: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is shown.
pub(super) struct Shown<'a> {
    /// The command, or the files.
    pub(super) of: String,
    /// The profile of the first table and of the files.
    pub(super) main: Titled<'a>,
    /// Another moment, if there is one.
    pub(super) other: Option<Titled<'a>>,
    /// Of a change: what was before it, and what after it.
    pub(super) change: Option<(&'a NamedProfile, &'a NamedProfile)>,
    /// Live bytes at each dump.
    pub(super) timeline: Vec<(f64, f64)>,
}

impl Output {
    /// Writes the files that are asked for, and prints the profile.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn present(&self, shown: &Shown<'_>) -> Result<()> {
        // First: a reader that closes the pipe ends the lab when it prints.
        let written = self.name.as_ref().map_or(Ok(()), |name| self.write(shown, name));
        if self.json {
            let titled =
                |titled: &Titled<'_>| json!({"title": titled.title, "profile": table::to_json(titled.profile)});
            println!(
                "{}",
                json!({"of": shown.of, "main": titled(&shown.main), "other": shown.other.as_ref().map(titled)})
            );
        } else {
            println!("{}: {}", shown.main.title, shown.of);
            self.print(shown.main.profile);
            if let Some(other) = &shown.other {
                println!("\n{}:", other.title);
                self.print(other.profile);
            }
        }
        shown.main.profile.warnings().iter().for_each(|warning| eprintln!("{warning}"));
        written
    }

    fn print(&self, profile: &NamedProfile) {
        let sum = profile.sum().of(self.measure);
        let mut rows = table::rows(profile, self.measure);
        rows.retain(|row| row.own.bytes != 0 || row.own.blocks != 0);
        let most = if self.rows == 0 { usize::MAX } else { self.rows };
        let cells: Vec<Vec<String>> = rows.iter().take(most).map(|row| shortened(table::cells(row, sum))).collect();
        if cells.is_empty() {
            println!("no samples: the program allocated less than a sampling interval, or frees what it allocates");
            return;
        }
        terminal_table::print(&table::header(self.measure), &cells, 1);
        let left_out = rows.len().saturating_sub(most);
        let rest = if left_out > 0 { format!("; {left_out} more functions with --rows 0") } else { String::new() };
        let blocks = quantity::count(sum.blocks.unsigned_abs());
        println!("{} {}, in {blocks} blocks{rest}", table::bytes(sum.bytes), self.measure.name());
    }

    /// Writes the four files, and names them on stderr.
    fn write(&self, shown: &Shown<'_>, name: &Path) -> Result<()> {
        let lines = match shown.change {
            Some((before, after)) => collapsed::lines_of_change(before, after, self.measure),
            None => collapsed::lines(shown.main.profile, self.measure),
        };
        let mut pprof = Vec::new();
        pprof_file::write(shown.main.profile, &mut pprof).context("the profile cannot be compressed")?;
        let title = format!("Bytes {}: {}", self.measure.name(), shown.of);
        let svg = flame_graph::draw(&title, &lines)?;
        let contents = Contents {
            of: shown.of.clone(),
            profiles: [Some(&shown.main), shown.other.as_ref()].into_iter().flatten().copied().collect(),
            measure: self.measure,
            timeline: shown.timeline.clone(),
            timeline_axis: "dump",
        };
        let html = page::render(&contents)?;
        let mut folded = lines.join("\n");
        folded.push('\n');
        let files = [("pb.gz", pprof), ("folded", folded.into_bytes()), ("html", html.into_bytes())];
        let files = files.into_iter().chain(svg.map(|svg| ("svg", svg.into_bytes())));
        for (extension, contents) in files {
            let mut file = OsString::from(name);
            file.push(format!(".{extension}"));
            let path = PathBuf::from(file);
            fs::write(&path, contents)
                .with_context(|| format!("{} cannot be written; name another with --out", path.display()))?;
            eprintln!("freestone: wrote {}", path.display());
        }
        Ok(())
    }
}

/// Longest name of a function in the table; the names of templates have no end.
const LONGEST_NAME: usize = 48;

fn shortened(mut cells: Vec<String>) -> Vec<String> {
    if let Some(name) = cells.first_mut()
        && name.chars().count() > LONGEST_NAME
    {
        *name = name.chars().take(LONGEST_NAME - 1).chain(['…']).collect();
    }
    cells
}
