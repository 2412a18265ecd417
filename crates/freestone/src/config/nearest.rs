//! The option that a mistyped name was probably meant to be.
//!
//! The distance of two names is the number of characters to insert, remove or replace (Levenshtein 1966). A name is suggested if a third of its
//! characters or fewer differ.

use crate::config::OPTIONS;

/// No key is longer, and no longer name is meant to be one.
const LONGEST: usize = 32;

/// The key that differs least from `name`; `None` if none is similar.
pub(crate) fn nearest(name: &[u8]) -> Option<&'static str> {
    let near = OPTIONS.iter().map(|spec| (distance(name, spec.key.as_bytes()), spec.key));
    let (least, key) = near.min_by_key(|&(distance, _)| distance)?;
    (3 * least <= key.len()).then_some(key)
}

/// How many characters differ; more than any key has if one of the names is too long. A function of its own: the search for the least would have it twice.
#[inline(never)]
fn distance(name: &[u8], key: &[u8]) -> usize {
    if name.len() > LONGEST || key.len() > LONGEST {
        return usize::MAX / 3;
    }
    // One row of the table: the distances of the part of `name` so far to each beginning of `key`.
    let mut row: [usize; LONGEST + 1] = core::array::from_fn(|n| n);
    for (n, typed) in name.iter().enumerate() {
        let (mut diagonal, mut left) = (n, n + 1);
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (place, letter) in row.iter_mut().skip(1).zip(key) {
            let replaced = diagonal + usize::from(!typed.eq_ignore_ascii_case(letter));
            diagonal = *place;
            left = replaced.min(diagonal + 1).min(left + 1);
            *place = left;
        }
    }
    row.get(key.len()).copied().unwrap_or(usize::MAX / 3)
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn a_distance_is_the_number_of_characters_to_change() {
        assert_eq!(
            [distance(b"decay", b"decay"), distance(b"DECAY", b"decay"), distance(b"dcay", b"decay")],
            [0, 0, 1]
        );
        assert_eq!([distance(b"", b"abc"), distance(b"abc", b""), distance(b"kitten", b"sitting")], [3, 3, 3]);
    }

    #[test]
    fn a_mistyped_name_gets_the_option_it_resembles_and_another_word_none() {
        assert_eq!(nearest(b"decai_ms"), Some("decay_ms"));
        assert_eq!(nearest(b"HARDN"), Some("harden"));
        assert_eq!(nearest(b"colour"), None);
        assert_eq!(nearest(&[b'a'; 100]), None);
    }
}
