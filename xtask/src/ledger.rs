//! The results of a long command so far, in a file under the target folder, so that the command can be stopped and resumed.
//!
//! A line is `fingerprint verdict name`. The fingerprint is of the sources that the verdict is about, without their comments: when the code
//! changes, the line no longer counts. Lines are only ever appended; the last one about a name wins.

use crate::process::target;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

/// See the module header.
pub(crate) struct Ledger {
    file: PathBuf,
    verdicts: BTreeMap<(String, String), String>,
}

impl Ledger {
    /// Opens the ledger called `name` and reads its lines.
    pub(crate) fn open(name: &str) -> Result<Self> {
        let folder = target().join("proofs");
        fs::create_dir_all(&folder)?;
        let file = folder.join(name);
        let text = if file.exists() { fs::read_to_string(&file)? } else { String::new() };
        let mut verdicts = BTreeMap::new();
        for line in text.lines() {
            let mut parts = line.splitn(3, ' ');
            if let (Some(fingerprint), Some(verdict), Some(name)) = (parts.next(), parts.next(), parts.next()) {
                verdicts.insert((fingerprint.to_owned(), name.to_owned()), verdict.to_owned());
            }
        }
        Ok(Self { file, verdicts })
    }

    /// The verdict on `name` for these sources.
    pub(crate) fn verdict(&self, fingerprint: &str, name: &str) -> Option<&str> {
        self.verdicts.get(&(fingerprint.to_owned(), name.to_owned())).map(String::as_str)
    }

    /// Appends a verdict, one word, to the file.
    pub(crate) fn write(&mut self, fingerprint: &str, verdict: &str, name: &str) -> Result<()> {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.file)?;
        writeln!(file, "{fingerprint} {verdict} {name}")
            .with_context(|| format!("cannot write {}", self.file.display()))?;
        self.verdicts.insert((fingerprint.to_owned(), name.to_owned()), verdict.to_owned());
        Ok(())
    }
}

/// A number for the contents of some files and of all Rust sources in some folders. Lines of a source that are comments do not count.
pub(crate) fn fingerprint(paths: &[PathBuf]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    paths.iter().try_for_each(|path| add(path, &mut hasher))?;
    Ok(format!("{:016x}", hasher.finish()))
}

fn add(path: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    if path.is_dir() {
        let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
        let mut entries = entries.collect::<std::io::Result<Vec<_>>>()?;
        entries.sort();
        return entries
            .iter()
            .filter(|entry| entry.is_dir() || is_source(entry))
            .try_for_each(|entry| add(entry, hasher));
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    match std::str::from_utf8(&bytes) {
        Ok(text) if is_source(path) => code(text).for_each(|line| line.hash(hasher)),
        _ => bytes.hash(hasher),
    }
    Ok(())
}

/// The lines of a source that a compiler sees: all but comments.
pub(crate) fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"))
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_words_in_a_comment_leave_the_code_as_it_is() {
        let (before, after) = ("/// Old.\nfn f() {\n    g();\n}\n", "/// New,\n/// longer.\n\nfn f() {\n  g();\n}");
        assert!(code(before).eq(code(after)));
        assert!(!code(before).eq(code("fn f() {\n    h();\n}")));
    }
}
