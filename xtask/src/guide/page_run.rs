//! Runs the fences of one page, in their order.

use super::fence::Fence;
use super::file_syntax::{self, Checked};
use super::stage::Stage;
use crate::process::is_installed;
use anyhow::{Result, bail};
use std::fs;
use std::time::Instant;

/// Seconds from which on a fence is named, with its time: the step has to stay short.
const WORTH_NAMING: f64 = 5.0;

/// What was done, and how often.
type Counts = Vec<(String, usize)>;

/// Runs the page; an error names the line.
pub(super) fn run(stage: &Stage, page: &str, fences: &[Fence]) -> Result<Counts> {
    let folder = stage.folder_of(page)?;
    let mut counts = Counts::new();
    let mut exports = String::new();
    // Of the last command; none if it did not run.
    let mut output = None;
    for (index, fence) in fences.iter().enumerate() {
        let missing = fence.tool.as_ref().filter(|tool| !is_installed(tool));
        let done = match (fence.language.as_str(), fence.needs.as_ref().or(missing), &fence.file) {
            (_, Some(what), _) => {
                output = None;
                format!("not run: needs {what}")
            }
            ("sh", None, None) => {
                output = Some(play(stage, &folder, &exports, fence)?);
                let kept = fence.text.lines().filter(|line| line.starts_with("export "));
                kept.for_each(|line| exports = format!("{exports}{line}\n"));
                "commands run".into()
            }
            ("text", None, None) if fence.is_output => {
                let Some(printed) = &output else { continue };
                if let Some(line) = fence.text.lines().find(|line| !is_in(line, printed)) {
                    bail!("{}: the output has no line `{line}`:\n{printed}", fence.line);
                }
                "outputs as shown".into()
            }
            ("text", None, None) => "texts, shown only".into(),
            (language, None, Some(file)) => {
                let path = folder.join(file);
                path.parent().map_or(Ok(()), fs::create_dir_all)?;
                fs::write(&path, &fence.text)?;
                match file_syntax::check(&path, &fence.text) {
                    Err(error) => bail!("{}: {file}: {error}", fence.line),
                    Ok(Checked::By(program)) => format!("files checked by {program}"),
                    Ok(Checked::LineByLine) => "files checked line by line".into(),
                    Ok(Checked::Not) if is_used(language, file, &fences[index + 1..]) => {
                        "files used by commands".into()
                    }
                    Ok(Checked::Not) => bail!("{}: no command of the page uses {file}", fence.line),
                }
            }
            (language, None, None) => bail!("{}: nothing runs this {language}", fence.line),
        };
        match counts.iter_mut().find(|(what, _)| *what == done) {
            Some((_, n)) => *n += 1,
            None => counts.push((done, 1)),
        }
    }
    Ok(counts)
}

/// Runs the commands of a fence, and returns everything that they print.
fn play(stage: &Stage, folder: &std::path::Path, exports: &str, fence: &Fence) -> Result<String> {
    let began = Instant::now();
    let both = stage.shell(folder, &format!("exec 2>&1\n{exports}{}", fence.text)).output()?;
    let text = String::from_utf8_lossy(&both.stdout).into_owned();
    let seconds = began.elapsed().as_secs_f64();
    if seconds >= WORTH_NAMING {
        println!("{}: {seconds:.1} s", fence.text.lines().last().unwrap_or_default());
    }
    if !both.status.success() {
        bail!("{}: {} of\n{}{text}", fence.line, both.status, fence.text);
    }
    Ok(text)
}

/// Whether a later command uses a file: by its name, or by the tool that finds such files itself.
fn is_used(language: &str, file: &str, later: &[Fence]) -> bool {
    let tool = match language {
        "rust" | "toml" => "cargo ",
        "go" => "go run",
        _ if file == "go.mod" => "go run",
        _ => file,
    };
    later.iter().any(|fence| fence.language == "sh" && (fence.text.contains(tool) || fence.text.contains(file)))
}

/// Whether `line` is a line of `output`, where each `…` stands for any text.
fn is_in(line: &str, output: &str) -> bool {
    output.lines().any(|printed| matches(line.trim_end(), printed.trim_end()))
}

fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('…') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut parts = rest.split('…').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_leave_out_what_varies() {
        assert!(is_in("time … ms", "a\ntime 3.1 ms\n"));
        assert!(is_in("a … b … c", "a 1 b 2 c"));
        assert!(is_in("…", "") || is_in("…", "x"));
        assert!(!is_in("time … ms", "time 3 s"));
        assert!(!is_in("a … b … c", "a 1 c"));
        assert!(!is_in("time", "times"));
    }

    #[test]
    fn a_program_that_no_command_compiles_is_noticed() {
        let sh = |text: &str| super::super::fence::fences(&format!("```sh\n{text}\n```\n")).unwrap();
        assert!(is_used("c", "x.c", &sh("cc x.c")));
        assert!(!is_used("c", "x.c", &sh("cc y.c")));
        assert!(is_used("rust", "src/main.rs", &sh("cargo run")));
    }
}
