//! `freestone profile`: which calls hold the memory of a command or a process, from samples of its allocations.
//!
//! | module | owns |
//! |---|---|
//! | [`run`] | a command with the profiler on |
//! | [`dumps`] | the dumps that the processes of a run leave |
//! | [`living`] | a process that is running |
//! | [`output`] | the table on stdout, and the files |

mod dumps;
mod living;
mod output;
mod run;

use crate::heap_profile::dump;
use crate::heap_profile::named::NamedProfile;
use crate::heap_profile::page::Titled;
use anyhow::Result;
use output::{Output, Shown};
use std::path::{Path, PathBuf};

/// The options of `freestone profile`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    run: run::RunOptions,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show dumps that exist; several of one process give a peak and a timeline, in the order of the numbers in their names
    Show {
        /// The dumps; names that differ in more than numbers stay in the order in which they are given
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Show what changed from one dump to another
    Diff {
        /// The earlier dump
        before: PathBuf,
        /// The later dump
        after: PathBuf,
        #[command(flatten)]
        output: Output,
    },
}

/// Runs the command, or reads dumps; returns the exit status.
///
/// # Errors
/// A dump cannot be read, or a file cannot be written.
pub(crate) fn main(options: &Options) -> Result<u8> {
    match &options.action {
        Some(Action::Show { files, output }) => show(files, output).map(|()| 0),
        Some(Action::Diff { before, after, output }) => diff(before, after, output).map(|()| 0),
        None => run::run(&options.run),
    }
}

/// Shows the last of several dumps, and the one with most live bytes as the peak.
fn show(files: &[PathBuf], output: &Output) -> Result<()> {
    let files = in_order_of_numbers(files);
    let dumps = files.iter().map(|file| dump::read(file)).collect::<Result<Vec<_>>>()?;
    let profiles: Vec<NamedProfile> = dumps.iter().map(NamedProfile::new).collect();
    let live: Vec<i64> = profiles.iter().map(|profile| profile.sum().live.bytes).collect();
    let last = profiles.len() - 1;
    let peak = (0..=last).rev().max_by_key(|&index| live[index]).unwrap_or(last);
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    output.present(&Shown {
        of: names[last].clone(),
        main: Titled { title: "Now", profile: &profiles[last] },
        other: (peak != last).then(|| Titled { title: "At the peak", profile: &profiles[peak] }),
        change: None,
        timeline: live.iter().zip(1..).map(|(&bytes, number)| (f64::from(number), bytes as f64)).collect(),
    })
}

/// The files in the order of the numbers in their names, if these differ in nothing else: a shell puts 10 before 2. Otherwise as they are given.
fn in_order_of_numbers(files: &[PathBuf]) -> Vec<PathBuf> {
    let texts = |file: &PathBuf| -> Vec<String> {
        let name = file.to_string_lossy();
        name.split(|letter: char| letter.is_ascii_digit()).filter(|text| !text.is_empty()).map(str::to_owned).collect()
    };
    // A number with more digits is larger.
    let numbers = |file: &PathBuf| -> Vec<(usize, String)> {
        let name = file.to_string_lossy();
        let digits = name.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
        digits.map(|digits| digits.trim_start_matches('0')).map(|digits| (digits.len(), digits.to_owned())).collect()
    };
    let mut files = files.to_vec();
    if files.iter().all(|file| texts(file) == texts(&files[0])) {
        files.sort_by_cached_key(numbers);
    }
    files
}

fn diff(before: &Path, after: &Path, output: &Output) -> Result<()> {
    let [earlier, later] = [dump::read(before)?, dump::read(after)?].map(|dump| NamedProfile::new(&dump));
    let change = later.minus(&earlier);
    output.present(&Shown {
        of: format!("change from {} to {}", before.display(), after.display()),
        main: Titled { title: "What changed", profile: &change },
        other: None,
        change: Some((&earlier, &later)),
        timeline: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_in_numbers_are_in_their_order_and_others_as_they_are_given() {
        let order = |names: &[&str]| -> Vec<String> {
            let files: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            in_order_of_numbers(&files).iter().map(|file| file.display().to_string()).collect()
        };
        assert_eq!(order(&["f.7.1.heap", "f.7.10.heap", "f.7.2.heap"]), ["f.7.1.heap", "f.7.2.heap", "f.7.10.heap"]);
        assert_eq!(order(&["f.10.1.heap", "f.9.3.heap", "f.9.02.heap"]), ["f.9.02.heap", "f.9.3.heap", "f.10.1.heap"]);
        let given = ["f.7.2.live.heap", "f.7.1.peak.heap"];
        assert_eq!(order(&given), given);
    }
}
