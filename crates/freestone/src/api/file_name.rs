//! Names of files in options, in which `%` and a letter stand for a number or a word, and `%%` for `%`.

use core::fmt::Write;
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

/// A name with what its letters stand for. `value` writes that of a letter, or returns `false` if the letter has none: then it stays, with its `%`.
pub(super) fn expand(name: &str, value: &dyn Fn(u8, &mut FileName) -> bool) -> FileName {
    let mut text = FixedText::new();
    let mut is_plain = true;
    for part in name.split('%') {
        let is_known = !is_plain && part.bytes().next().is_some_and(|letter| value(letter, &mut text));
        if !is_plain && !is_known {
            // Writing into `FixedText` cannot fail.
            let _ = text.write_str("%");
        }
        let _ = text.write_str(if is_known { part.get(1..).unwrap_or_default() } else { part });
        // Behind `%%`, whose second one ends an empty part.
        is_plain = !is_plain && part.is_empty();
    }
    let _ = text.write_str("\0");
    text
}

#[cfg(test)]
mod tests;
