//! Links between documents.

use super::prose::lines_of_document;
use anyhow::Result;
use std::fs;
use std::path::Path;

/// Links of the documents among `files` that lead nowhere, or to another decision than their text says.
pub(crate) fn complaints(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.ends_with(".md")) {
        let text = fs::read_to_string(root.join(file))?;
        for (number, line) in lines_of_document(&text) {
            for (before, after) in line.split("](").zip(line.split("](").skip(1)) {
                let label = before.rsplit('[').next().unwrap_or_default();
                let target = after.split(')').next().unwrap_or_default();
                let complaint = complaint(root, file, &text, target).or_else(|| misnumbered(label, target));
                complaints.extend(complaint.map(|complaint| format!("{file}:{number}: {complaint}")));
            }
        }
    }
    Ok(complaints)
}

fn complaint(root: &Path, file: &str, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let other = root.join(folder).join(path);
    if !path.is_empty() && !other.exists() {
        return Some(format!("the link {target} leads to no file"));
    }
    if anchor.is_empty() || (!path.is_empty() && !path.ends_with(".md")) {
        return None;
    }
    let there = if path.is_empty() { text.to_owned() } else { fs::read_to_string(other).unwrap_or_default() };
    let mut headings = there.lines().filter(|line| line.starts_with('#')).map(anchor_of);
    (!headings.any(|heading| heading == anchor)).then(|| format!("the link {target} leads to no heading"))
}

/// Says so if `label` ends with the number of a decision, and `target` is another one.
fn misnumbered(label: &str, target: &str) -> Option<String> {
    let said: u32 = label.strip_prefix("decision ").unwrap_or(label).parse().ok()?;
    let number: u32 = target.rsplit('/').next()?.get(..4)?.parse().ok()?;
    (said != number).then(|| format!("the link to decision {said} leads to {target}"))
}

/// The anchor that a heading gets on the usual sites: lower case, hyphens for spaces, no punctuation.
fn anchor_of(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Sample;

    #[test]
    fn a_link_leads_to_a_file_and_a_heading() {
        let page = "# A page\n[a](other.md) [b](other.md#two-words) [c](#a-page) [d](https://example.org/x)\n```\n[e](none)\n```\n";
        let sample = Sample::new(&[("docs/page.md", page), ("docs/other.md", "## Two `words`\n")]);
        let files = vec!["docs/page.md".to_owned()];
        assert!(complaints(sample.folder(), &files).expect("readable").is_empty());
        let bad =
            Sample::new(&[("docs/page.md", "[a](gone.md)\n[b](#nowhere)\n[c](other.md#one)\n"), ("docs/other.md", "")]);
        let found = complaints(bad.folder(), &files).expect("readable");
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0], "docs/page.md:1: the link gone.md leads to no file");
    }

    #[test]
    fn a_link_to_a_decision_has_its_number() {
        let page = "[decision 2](0002-b.md) [2](0002-b.md) [the other](0002-b.md)\n[decision 1](0002-b.md)\n";
        let sample = Sample::new(&[("page.md", page), ("0002-b.md", "")]);
        let found = complaints(sample.folder(), &["page.md".to_owned()]).expect("readable");
        assert_eq!(found, ["page.md:2: the link to decision 1 leads to 0002-b.md"]);
    }
}
