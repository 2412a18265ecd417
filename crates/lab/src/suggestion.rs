//! Messages about unknown names: the most similar names, and the list of all.

/// Similarity, from 0 to 1, above which a name is suggested.
const SIMILAR: f64 = 0.7;

/// The most names that are suggested.
const MOST_SUGGESTIONS: usize = 3;

/// A message about the unknown `name` of a `kind`: the most similar of `known`, and all of them.
pub(crate) fn unknown<'a>(kind: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    unknown_after("", kind, name, known)
}

/// As [`unknown`], where all names begin with `prefix`: it makes no name similar to another.
pub(crate) fn unknown_after<'a>(
    prefix: &str,
    kind: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let similarity =
        |each: &str| strsim::jaro_winkler(name.trim_start_matches(prefix), each.trim_start_matches(prefix));
    let mut similar: Vec<(f64, &str)> = known.iter().map(|&each| (similarity(each), each)).collect();
    similar.sort_by(|a, b| b.0.total_cmp(&a.0));
    similar.truncate(MOST_SUGGESTIONS);
    similar.retain(|&(similarity, _)| similarity > SIMILAR);
    let similar: Vec<&str> = similar.into_iter().map(|(_, each)| each).collect();
    let guess = if similar.is_empty() { String::new() } else { format!(" Did you mean {}?", similar.join(" or ")) };
    format!("no {kind} is called '{name}'.{guess} There are: {}", known.join(", "))
}

#[cfg(test)]
mod tests;
