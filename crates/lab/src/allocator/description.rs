//! An allocator that can be measured.

use crate::allocator::as_text;
use crate::process::preload::Preload;
use crate::workload::loaded_allocator::UNSTATED;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// An allocator: what it is called, and how a process gets it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Allocator {
    /// Its name in tables.
    pub(crate) name: String,
    /// The library to preload; `None` for the C library's allocator.
    #[serde(serialize_with = "as_text::path")]
    pub(crate) library: Option<PathBuf>,
    /// The version that the library states, once it has run.
    pub(crate) version: Option<String>,
    /// Environment variables that its processes get: options under test.
    #[serde(default, with = "as_text")]
    pub(crate) environment: Vec<(String, OsString)>,
}

impl Allocator {
    /// The C library's allocator.
    pub(crate) fn system() -> Self {
        Self { name: "system".into(), library: None, version: None, environment: Vec::new() }
    }

    /// The allocator in `library`. The path is resolved, because that is how it appears among a process's mappings.
    pub(crate) fn in_library(name: &str, library: PathBuf) -> Self {
        let library = library.canonicalize().unwrap_or(library);
        Self { name: name.into(), library: Some(library), version: None, environment: Vec::new() }
    }

    /// The same allocator under another name and with options set, besides those that it has.
    pub(crate) fn with_options(&self, name: &str, options: &[(&str, &str)]) -> Self {
        let more = options.iter().map(|&(key, value)| (key.to_owned(), value.into()));
        let environment = self.environment.iter().cloned().chain(more).collect();
        Self { name: name.into(), environment, ..self.clone() }
    }

    /// What puts it into a child process.
    pub(crate) fn preload(&self) -> Preload<'_> {
        Preload { library: self.library.as_deref(), environment: &self.environment }
    }

    /// Its name with its version, as tables show it: `mimalloc 3.3.2`, `system (glibc 2.36)`; only the name if no version is known.
    pub(crate) fn label(&self) -> String {
        let Some(stated) = self.version.as_deref().filter(|&version| version != UNSTATED) else {
            return self.name.clone();
        };
        // What follows in parentheses names the source.
        let stated = stated.split(" (").next().unwrap_or(stated);
        match stated.split_once(' ') {
            Some((product, version)) if self.name.starts_with(product) => format!("{} {version}", self.name),
            None if stated.starts_with(|letter: char| letter.is_ascii_digit()) => format!("{} {stated}", self.name),
            _ => format!("{} ({stated})", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn a_label_is_the_name_with_the_version_that_the_library_states() {
        let label = |name: &str, version: &str| {
            Allocator { version: Some(version.into()), ..Allocator::in_library(name, PathBuf::new()) }.label()
        };
        assert_eq!(label("mimalloc", "mimalloc 3.3.2 (libmimalloc-sys 0.1.49)"), "mimalloc 3.3.2");
        assert_eq!(label("mimalloc2", "mimalloc 2.3.2 (libmimalloc-sys 0.1.49, feature v2)"), "mimalloc2 2.3.2");
        assert_eq!(label("tcmalloc", "tcmalloc crate-0.1.14 (Google's)"), "tcmalloc crate-0.1.14");
        assert_eq!(label("system", "glibc 2.36"), "system (glibc 2.36)");
        assert_eq!(label("system again", "glibc 2.36"), "system again (glibc 2.36)");
        assert_eq!(label("freestone", "0.1.0"), "freestone 0.1.0");
        assert_eq!(label("mine", "jemalloc 5.3.1 (elsewhere)"), "mine (jemalloc 5.3.1)");
        assert_eq!(label("mine", UNSTATED), "mine");
        assert_eq!(Allocator::system().label(), "system", "before it has run");
    }

    #[test]
    fn names_that_are_not_utf_8_are_written_as_text_and_what_is_text_is_read_again() {
        let odd = OsString::from_vec(b"/\xff".to_vec());
        let mut allocator = Allocator::in_library("x", odd.clone().into());
        allocator.environment.push(("A".into(), odd));
        let written = serde_json::to_value(&allocator).unwrap();
        assert_eq!((&written["library"], &written["environment"][0][1]), (&"/\u{fffd}".into(), &"/\u{fffd}".into()));
        let read: Allocator = serde_json::from_value(written).unwrap();
        assert_eq!(
            (read.library, read.environment),
            (Some("/\u{fffd}".into()), vec![("A".into(), "/\u{fffd}".into())])
        );
    }

    #[test]
    fn options_change_the_name_and_the_environment_and_keep_the_library() {
        let tuned = Allocator::in_library("mine", PathBuf::from("/lib/x.so")).with_options("mine, lean", &[("A", "1")]);
        assert_eq!(
            (tuned.name.as_str(), tuned.library.as_deref()),
            ("mine, lean", Some(std::path::Path::new("/lib/x.so")))
        );
        assert_eq!(tuned.preload().environment, [("A".to_owned(), "1".into())]);
        let twice = tuned.with_options("mine, leaner", &[("B", "2")]);
        assert_eq!(twice.environment, [("A".to_owned(), "1".into()), ("B".to_owned(), "2".into())]);
    }
}
