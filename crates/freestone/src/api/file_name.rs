//! Names of files in options, in which `%` and a letter stand for a number or a word, and `%%` for `%`.

use freestone_base::text::FixedText;

/// Longest name of a file, with its final zero.
pub(super) const NAME_BYTES: usize = 1100;

/// A name and its final zero, without that zero if the name is too long.
pub(super) type FileName = FixedText<NAME_BYTES>;

/// Whether `%` and the letter are in a name.
#[inline(never)]
pub(super) fn has(name: &[u8], letter: u8) -> bool {
    let mut is_behind = false;
    name.iter().any(|&byte| {
        let is_found = is_behind && byte == letter;
        is_behind = !is_behind && byte == b'%';
        is_found
    })
}

/// Writes a name, with what its letters stand for, into `text`, which is empty. `value` writes that of a letter, or returns `false` if the letter has none: then it stays, with its `%`.
pub(super) fn expand(text: &mut FileName, name: &[u8], value: &dyn Fn(u8, &mut FileName) -> bool) {
    let mut is_plain = true;
    for part in name.split(|&byte| byte == b'%') {
        let is_known = !is_plain && part.first().is_some_and(|&letter| value(letter, text));
        if !is_plain && !is_known {
            text.push(b"%");
        }
        text.push(if is_known { part.get(1..).unwrap_or_default() } else { part });
        // Behind `%%`, whose second one ends an empty part.
        is_plain = !is_plain && part.is_empty();
    }
    text.push(b"\0");
}

#[cfg(test)]
mod tests;
