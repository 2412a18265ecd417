//! Leaks that are known and not to be reported: lines of `leak:PATTERN`, as LeakSanitizer reads them.
//!
//! A pattern is a part of the name of a function, a source file or a module of the stack; `*` stands for any text, `^` and `$` for the beginning
//! and the end. Empty lines and those that begin with `#` are skipped.

use crate::symbols::frame::Frame;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// The patterns of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suppressions(Vec<String>);

impl Suppressions {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or a line is none of these.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("suppressions {} cannot be read; check the path", path.display()))?;
        Self::parse(&text).with_context(|| format!("suppressions {}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut patterns = Vec::new();
        for (index, line) in text.lines().enumerate() {
            match line.trim() {
                "" => {}
                line if line.starts_with('#') => {}
                line => match line.strip_prefix("leak:") {
                    Some(pattern) if !pattern.is_empty() => patterns.push(pattern.to_owned()),
                    _ => bail!("line {}: '{line}' is not of the form leak:PATTERN", index + 1),
                },
            }
        }
        Ok(Self(patterns))
    }

    /// Whether a leak with this stack is suppressed.
    pub(crate) fn apply_to(&self, stack: &[Frame]) -> bool {
        let texts = |frame: &Frame| [Some(frame.function.clone()), frame.file.clone(), Some(frame.module.clone())];
        let matches = |text: &String| self.0.iter().any(|pattern| matches(pattern, text));
        stack.iter().flat_map(texts).flatten().any(|text| matches(&text))
    }
}

/// Whether a text has the pattern in it.
fn matches(pattern: &str, text: &str) -> bool {
    let (from_start, pattern) = pattern.strip_prefix('^').map_or((false, pattern), |rest| (true, rest));
    let (to_end, pattern) = pattern.strip_suffix('$').map_or((false, pattern), |rest| (true, rest));
    let mut parts: Vec<&str> = pattern.split('*').collect();
    let mut rest = text;
    if from_start {
        let Some(after) = rest.strip_prefix(parts.remove(0)) else { return false };
        rest = after;
    }
    let last = if to_end { parts.pop() } else { None };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    match last {
        Some(last) => rest.ends_with(last),
        None => !(from_start && to_end) || rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_parts_of_names_with_stars_and_anchors() {
        assert!(matches("init", "module_init_once") && !matches("init", "begin"));
        assert!(matches("mod*once", "module_init_once") && !matches("once*mod", "module_init_once"));
        assert!(matches("^module", "module_init") && !matches("^init", "module_init"));
        assert!(matches("init$", "module_init") && !matches("module$", "module_init"));
        assert!(matches("^main$", "main") && !matches("^main$", "mainly") && !matches("^main$", "xmain"));
        assert!(matches("libpython*.so", "/usr/lib/libpython3.11.so.1"));
    }

    #[test]
    fn any_function_file_or_module_of_a_stack_counts() {
        let frame =
            Frame { function: "f".into(), file: Some("/src/a.c".into()), line: 1, module: "/lib/libx.so".into() };
        let applies = |text: &str| Suppressions::parse(text).unwrap().apply_to(&[Frame::default(), frame.clone()]);
        assert!(applies("# known\n\nleak:^f$\n") && applies("leak:a.c") && applies("leak:libx"));
        assert!(!applies("leak:g") && !applies(""));
    }

    #[test]
    fn other_lines_are_refused_with_their_number() {
        let why = format!("{:#}", Suppressions::parse("leak:a\nrace:b\n").unwrap_err());
        assert!(why.contains("line 2") && why.contains("race:b"), "{why}");
        assert!(Suppressions::parse("leak:\n").is_err());
        assert!(Suppressions::read(Path::new("/no/such/file")).is_err());
    }
}
