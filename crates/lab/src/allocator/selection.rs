//! The allocators of one measurement: those that the user named, or all available.

use crate::allocator::description::Allocator;
use crate::allocator::peer_library::{self, PEERS};
use crate::allocator::{freestone_library, option_value, preloading};
use crate::suggestion;
use anyhow::{Result, bail};
use freestone::options::OPTIONS;
use std::path::Path;

/// The allocators to measure.
pub(crate) struct Selection {
    /// The allocators, the baseline first.
    pub(crate) allocators: Vec<Allocator>,
    /// Why others are missing, one sentence each.
    pub(crate) missing: Vec<String>,
}

/// Finds the allocators that `wanted` names, as `NAME` or `NAME=PATH.so`, with options of Freestone behind it: `NAME:OPTION=VALUE`. An empty list
/// means all that are available.
///
/// # Errors
/// A name is unknown or given twice, an option cannot have its value, or a library is not an allocator.
pub(crate) fn select(wanted: &[String]) -> Result<Selection> {
    if wanted.is_empty() {
        return Ok(at_hand());
    }
    let mut allocators = Vec::new();
    for text in wanted.iter().flat_map(|text| text.split(',')) {
        let allocator = one(text.trim())?;
        if allocators.iter().any(|other: &Allocator| other.name == allocator.name) {
            bail!("allocator '{}' is named twice; give the second another name: NAME=PATH", allocator.name);
        }
        allocators.push(allocator);
    }
    Ok(Selection { allocators, missing: Vec::new() })
}

/// Finds the one allocator that `wanted` names, as [`select`] does.
///
/// # Errors
/// As of [`select`]; or there is more than one.
pub(crate) fn select_one(wanted: &str) -> Result<Allocator> {
    if wanted.contains(',') {
        bail!("'{wanted}': this takes one allocator; `freestone compare` runs a command under several");
    }
    one(wanted.trim())
}

/// Why the C library's allocator is refused for `what`: "leaks are found", for example.
pub(crate) fn only_freestone(what: &str) -> String {
    format!("{what} by Freestone itself, so the command has to run under Freestone: --allocator NAME=PATH")
}

fn one(text: &str) -> Result<Allocator> {
    let (allocator, options) = split_options(text);
    if options.is_empty() {
        return without_options(allocator);
    }
    let found = without_options(allocator)?;
    if found.library.is_none() || PEERS.iter().any(|peer| peer.name == found.name) {
        bail!("'{text}': the options behind a colon are Freestone's, and {} has others", found.name);
    }
    for (key, value) in &options {
        let Some(option) = OPTIONS.iter().position(|spec| spec.key == *key) else {
            bail!("'{text}': {}", suggestion::unknown("option", key, OPTIONS.iter().map(|spec| spec.key)));
        };
        if let Err(mistake) = option_value::check(option, value.as_bytes()) {
            bail!("'{text}': '{value}' is {mistake}");
        }
    }
    let variables: Vec<_> = options.iter().map(|(key, value)| (option_value::variable(key), *value)).collect();
    let variables: Vec<_> = variables.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    // The path of a library is no part of a name.
    let name = allocator.split_once('=').map_or_else(|| text.to_owned(), |(name, _)| name.to_owned());
    Ok(found.with_options(&name, &variables))
}

/// The allocator that a text names, and the options behind it. A colon that no option follows is part of a path.
fn split_options(text: &str) -> (&str, Vec<(&str, &str)>) {
    let (mut rest, mut options) = (text, Vec::new());
    while let Some((before, last)) = rest.rsplit_once(':')
        && let Some((key, value)) = last.split_once('=')
        && key.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
    {
        options.insert(0, (key, value));
        rest = before;
    }
    (rest, options)
}

fn without_options(text: &str) -> Result<Allocator> {
    if let Some((name, path)) = text.split_once('=') {
        if name.is_empty() || path.is_empty() {
            bail!("'{text}' has an empty name or path; write --allocator NAME=PATH.so");
        }
        let path = Path::new(path);
        preloading::check_allocator_library(path)?;
        return Ok(Allocator::in_library(name, path.to_path_buf()));
    }
    match text {
        "system" => Ok(Allocator::system()),
        "freestone" => freestone_library::find(),
        _ => match PEERS.iter().find(|peer| peer.name == text) {
            Some(peer) => peer_library::find_or_build(peer),
            None => {
                let known = ["system", "freestone"].into_iter().chain(PEERS.iter().map(|peer| peer.name));
                bail!("{}; any other: --allocator NAME=PATH.so", suggestion::unknown("allocator", text, known))
            }
        },
    }
}

/// The system's allocator, Freestone, and every peer that has been built.
fn at_hand() -> Selection {
    let mut selection = Selection { allocators: vec![Allocator::system()], missing: Vec::new() };
    match freestone_library::find() {
        Ok(freestone) => selection.allocators.push(freestone),
        Err(error) => selection.missing.push(format!("freestone is left out: {error:#}")),
    }
    let mut not_built = Vec::new();
    for peer in PEERS {
        match peer_library::built(peer) {
            Some(library) => selection.allocators.push(Allocator::in_library(peer.name, library)),
            None => not_built.push(peer.name),
        }
    }
    if !not_built.is_empty() {
        let list = not_built.join(", ");
        let what = format!("not built, so not measured: {list}. `freestone peers build` builds them in a few minutes");
        selection.missing.push(what);
    }
    selection
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(wanted: &[&str]) -> String {
        let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
        select(&wanted).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_name_given_twice_is_refused_also_within_one_list() {
        assert!(error(&["system,system"]).starts_with("allocator 'system' is named twice"));
        assert!(error(&["system", " system"]).starts_with("allocator 'system' is named twice"));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_names_there_are() {
        let text = error(&["sistem"]);
        assert!(text.contains("Did you mean system") && text.contains("--allocator NAME=PATH.so"), "{text}");
    }

    #[test]
    fn options_follow_a_name_or_a_path_behind_a_colon() {
        assert_eq!(split_options("freestone"), ("freestone", vec![]));
        assert_eq!(split_options("freestone:harden=checks"), ("freestone", vec![("harden", "checks")]));
        let two = vec![("harden", "checks"), ("decay_ms", "0")];
        assert_eq!(split_options("new=/a:b/x.so:harden=checks:decay_ms=0"), ("new=/a:b/x.so", two));
        assert_eq!(split_options("new=/a:b/x.so"), ("new=/a:b/x.so", vec![]));
        assert!(error(&["system:harden=checks"]).contains("Freestone's"));
    }

    #[test]
    fn a_library_must_be_an_allocator() {
        assert!(error(&["x=/etc/passwd"]).contains("not a shared object"));
        for text in ["=", "x=", "=/a.so"] {
            assert!(error(&[text]).starts_with(&format!("'{text}' has an empty name or path")));
        }
    }
}
