//! Code blocks of a page, with what their first lines say.

/// Languages that a fence may name.
const LANGUAGES: [&str; 11] = ["sh", "c", "cpp", "rust", "go", "toml", "ini", "yaml", "dockerfile", "json", "text"];

/// One code block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fence {
    /// The line of the page that opens it.
    pub line: usize,
    pub language: String,
    /// Where its text is written.
    pub file: Option<String>,
    /// What a machine needs to run it, if that is more than a test machine has.
    pub needs: Option<String>,
    /// The program without which it is skipped.
    pub tool: Option<String>,
    /// Whether it is the output of the command before.
    pub is_output: bool,
    pub text: String,
}

/// The fences of a page; `Err` begins with the number of the line that is wrong.
pub(super) fn fences(page: &str) -> Result<Vec<Fence>, String> {
    let mut fences: Vec<Fence> = Vec::new();
    let mut open: Option<Fence> = None;
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(""), Some(_)) => fences.extend(open.take()),
            (Some(first_line), None) => {
                open = Some(opened(index + 1, first_line).map_err(|error| format!("{}: {error}", index + 1))?);
            }
            (_, Some(fence)) => {
                fence.text += line;
                fence.text.push('\n');
            }
            (None, None) => {}
        }
    }
    match open {
        Some(fence) => Err(format!("{}: this fence has no end", fence.line)),
        None => Ok(fences),
    }
}

/// A fence that begins with this line.
fn opened(line: usize, first_line: &str) -> Result<Fence, String> {
    let mut words = first_line.split(',');
    let language = words.next().unwrap_or_default().to_owned();
    if !LANGUAGES.contains(&language.as_str()) {
        return Err(format!("a fence in no language that is known: `{first_line}`"));
    }
    let mut fence =
        Fence { line, language, file: None, needs: None, tool: None, is_output: false, text: String::new() };
    for word in words {
        match word.split_once('=') {
            Some(("file", name)) => fence.file = Some(name.to_owned()),
            Some(("needs", what)) => fence.needs = Some(what.to_owned()),
            Some(("tool", name)) => fence.tool = Some(name.to_owned()),
            None if word == "output" => fence.is_output = true,
            _ => return Err(format!("a fence with a marker that is not known: `{word}`")),
        }
    }
    let is_plain = ["sh", "text"].contains(&fence.language.as_str());
    if !is_plain && fence.file.is_none() && fence.needs.is_none() {
        return Err(format!("this {} is not run: give it `file=`", fence.language));
    }
    Ok(fence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_has_its_text_and_its_markers() {
        let found =
            fences("a\n```c,file=x.c\nint x;\n```\n```sh,needs=docker\ndocker\n```\n```text,output\n1\n```\n").unwrap();
        assert_eq!(found.iter().map(|fence| fence.line).collect::<Vec<_>>(), [2, 5, 8]);
        assert_eq!((found[0].file.as_deref(), found[0].text.as_str()), (Some("x.c"), "int x;\n"));
        assert_eq!(found[1].needs.as_deref(), Some("docker"));
        assert!(found[2].is_output && !found[0].is_output);
    }

    #[test]
    fn a_fence_that_nothing_would_run_is_refused() {
        for page in ["```\nls\n```\n", "```c\nint x;\n```\n", "```sh,ignore\nls\n```\n", "```sh\nls\n"] {
            assert!(fences(page).unwrap_err().starts_with("1: "), "{page}");
        }
    }
}
