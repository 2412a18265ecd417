//! The syntax of files to copy: by the program that reads them, where it is installed, else line by line.

use crate::process::{command, is_installed};
use std::path::Path;
use std::process::Output;

/// What a Dockerfile's lines begin with.
const INSTRUCTIONS: [&str; 13] = [
    "FROM",
    "RUN",
    "COPY",
    "ADD",
    "ENV",
    "ARG",
    "CMD",
    "ENTRYPOINT",
    "WORKDIR",
    "USER",
    "EXPOSE",
    "LABEL",
    "HEALTHCHECK",
];

/// How a file was checked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Checked {
    By(&'static str),
    LineByLine,
    /// Commands of the page use it, or nothing can check it.
    Not,
}

/// Checks the file at `path`, which contains `text`.
pub(super) fn check(path: &Path, text: &str) -> Result<Checked, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let end = name.rsplit('.').next().unwrap_or_default();
    match end {
        "service" => unit(text).and_then(|()| verified(path)),
        "conf" => unit(text).map(|()| Checked::LineByLine),
        "yaml" => yaml(path, text),
        "Dockerfile" => dockerfile(text).map(|()| Checked::LineByLine),
        _ => Ok(Checked::Not),
    }
}

/// A unit file has sections, and in them settings.
fn unit(text: &str) -> Result<(), String> {
    let mut has_section = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with('[') && line.ends_with(']') {
            has_section = true;
        } else if !has_section || !line.split_once('=').is_some_and(|(key, _)| key.chars().all(char::is_alphanumeric)) {
            return Err(format!("`{line}` is no setting of a section"));
        }
    }
    Ok(())
}

/// systemd's own verdict. Programs of the unit need not be installed.
fn verified(path: &Path) -> Result<Checked, String> {
    const PROGRAM: &str = "systemd-analyze";
    if !is_installed(PROGRAM) {
        return Ok(Checked::LineByLine);
    }
    let said = run(PROGRAM, &["verify", "--man=no", &path.to_string_lossy()])?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let about = String::from_utf8_lossy(&said.stderr).into_owned();
    let mut complaints = about.lines().filter(|line| line.contains(&name) && !line.contains("is not executable"));
    complaints.next().map_or(Ok(Checked::By(PROGRAM)), |complaint| Err(complaint.to_owned()))
}

fn yaml(path: &Path, text: &str) -> Result<Checked, String> {
    if let Some(line) = text.lines().find(|line| line.contains('\t')) {
        return Err(format!("a tab in `{line}`"));
    }
    if !is_installed("python3") || !run("python3", &["-c", "import yaml"])?.status.success() {
        return Ok(Checked::LineByLine);
    }
    const SCRIPT: &str = "import sys, yaml; list(yaml.safe_load_all(open(sys.argv[1])))";
    let said = run("python3", &["-c", SCRIPT, &path.to_string_lossy()])?;
    if said.status.success() {
        return Ok(Checked::By("a YAML parser"));
    }
    Err(String::from_utf8_lossy(&said.stderr).lines().last().unwrap_or("it is no YAML").to_owned())
}

fn dockerfile(text: &str) -> Result<(), String> {
    let mut continues = false;
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let first = line.split_whitespace().next().unwrap_or_default();
        if !continues && !INSTRUCTIONS.contains(&first) {
            return Err(format!("`{line}` begins with no instruction"));
        }
        continues = line.ends_with('\\');
    }
    if continues { Err("the last line goes on".into()) } else { Ok(()) }
}

fn run(program: &str, arguments: &[&str]) -> Result<Output, String> {
    command(program, arguments).output().map_err(|error| format!("cannot start {program}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dockerfile_consists_of_instructions() {
        assert_eq!(dockerfile("# a\nFROM debian\nRUN a \\\n    b\nCMD [\"x\"]\n"), Ok(()));
        assert!(dockerfile("FROM debian\nRUNS a\n").is_err());
        assert!(dockerfile("RUN a \\\n").is_err());
    }

    #[test]
    fn a_unit_file_consists_of_sections_and_settings() {
        assert_eq!(unit("# a\n[Service]\nEnvironment=A=b c\n"), Ok(()));
        assert!(unit("Environment=A\n").is_err());
        assert!(unit("[Service]\nEnvironment\n").is_err());
    }
}
