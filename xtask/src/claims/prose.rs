//! Prose in files: documents without their code blocks, comments without their code.

/// Names in backquotes on a line.
pub(super) fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The lines of a document outside code blocks, with their numbers.
pub(super) fn lines_of_document(text: &str) -> Vec<(usize, &str)> {
    outside_blocks(text.lines().enumerate().map(|(index, line)| (index + 1, line)))
}

/// The comments of a source file, without their marks and outside code blocks, with the lines' numbers.
pub(super) fn lines_of_comments(text: &str) -> Vec<(usize, &str)> {
    let comments = text.lines().enumerate().filter_map(|(index, line)| {
        let comment = line.trim_start().strip_prefix("//")?;
        Some((index + 1, comment.strip_prefix(['/', '!']).unwrap_or(comment)))
    });
    outside_blocks(comments)
}

fn outside_blocks<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<(usize, &'a str)> {
    let mut is_inside = false;
    let mut outside = Vec::new();
    for (number, line) in lines {
        if line.trim_start().starts_with("```") {
            is_inside = !is_inside;
        } else if !is_inside {
            outside.push((number, line));
        }
    }
    outside
}

/// A line of code without its comment. A mark inside a string ends nothing.
pub(super) fn without_comment<'a>(file: &str, line: &'a str) -> &'a str {
    let has_slashes = [".rs", ".go", ".c", ".h"].iter().any(|end| file.ends_with(end));
    let mark = if has_slashes { "//" } else { "# " };
    let is_in_string = |at: usize| line[..at].matches('"').count() % 2 == 1;
    match line.match_indices(mark).find(|&(at, _)| !is_in_string(at)) {
        Some((at, _)) => &line[..at],
        None => line,
    }
}

/// A text with every run of spaces, line ends and comment marks as one space, so that sentences can be looked for.
pub(super) fn flattened(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !["//", "///", "//!", "*"].contains(word));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_backquotes_are_found() {
        assert_eq!(quoted("a `b` c `d::e` f").collect::<Vec<_>>(), ["b", "d::e"]);
        assert_eq!(quoted("none").count(), 0);
    }

    #[test]
    fn code_blocks_are_no_prose() {
        assert_eq!(lines_of_document("a\n```\ncode\n```\nb\n"), [(1, "a"), (5, "b")]);
    }

    #[test]
    fn comments_are_prose_and_code_is_not() {
        let text = "//! a\ncode();\n    /// b\n//! ```\n//! code\n//! ```\nx(); // c\n// d\n";
        assert_eq!(lines_of_comments(text), [(1, " a"), (3, " b"), (8, " d")]);
    }

    #[test]
    fn a_mark_in_a_string_begins_no_comment() {
        assert_eq!(without_comment("a.rs", r#"f("https://x"); // y"#), r#"f("https://x"); "#);
        assert_eq!(without_comment("a.toml", "x = 1 # y"), "x = 1 ");
    }

    #[test]
    fn a_sentence_is_one_line() {
        assert_eq!(flattened("//! one\n//! two\n  three"), "one two three");
    }
}
