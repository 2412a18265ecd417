//! What to say about a name that does not exist: the nearest ones, and the list.

/// A sentence about the unknown `name` among `known`.
pub(crate) fn unknown<'a>(kind: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let mut near: Vec<(f64, &str)> = known.iter().map(|&each| (closeness(name, each), each)).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<&str> = near.into_iter().take(3).filter(|&(score, _)| score > 0.7).map(|(_, each)| each).collect();
    let guess = if near.is_empty() { String::new() } else { format!(" Did you mean {}?", near.join(" or ")) };
    format!("no {kind} is called '{name}'.{guess} There is: {}", known.join(", "))
}

fn closeness(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(a, b)
}

#[cfg(test)]
mod tests;
