//! Commands as text.

use std::ffi::OsString;

/// The command line as one would type it in a shell.
pub(crate) fn quoted(arguments: &[OsString]) -> String {
    let quote = |argument: &OsString| {
        let text = argument.to_string_lossy();
        let plain = |letter: char| letter.is_alphanumeric() || "-_./=:,+@%".contains(letter);
        let text = text.replace('\n', "↵");
        if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    arguments.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn only_what_a_shell_would_change_is_quoted() {
        let text = |words: &[&str]| quoted(&words.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(text(&["ls", "-l", "/a/b.c"]), "ls -l /a/b.c");
        assert_eq!(text(&["sh", "-c", "echo $x; true", ""]), "sh -c 'echo $x; true' ''");
        assert_eq!(text(&["it's", "a\nb"]), "'it'\\''s' 'a↵b'");
    }
}
