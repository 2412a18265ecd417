//! The newcomer's path of `docs/architecture.md`: under each heading, the numbered steps name functions in the order in which a reader opens them.
//!
//! A step begins `N. **`Type::function`** in `file.rs`:`. The file must have the function, a function before it in the same section must
//! name it, and no function is a step twice: the page can be read with the sources open, without going back.

use super::index::Function;
use super::prose::quoted;
use std::collections::BTreeSet;

/// A step: its line, function and file.
struct Step<'a> {
    number: usize,
    function: &'a str,
    file: &'a str,
}

/// The steps of each section.
fn sections(page: &str) -> Vec<Vec<Step<'_>>> {
    let mut sections = vec![Vec::new()];
    for (index, line) in page.lines().enumerate() {
        if line.starts_with("## ") {
            sections.push(Vec::new());
        }
        let is_step = line.split_once(". **`").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
        let mut names = quoted(line);
        if is_step
            && let (Some(function), Some(file)) = (names.next(), names.next())
            && let Some(section) = sections.last_mut()
        {
            section.push(Step { number: index + 1, function, file });
        }
    }
    sections
}

/// Steps that are not where the page says, or that nothing before them leads to.
pub(super) fn complaints(page: &str, functions: &[Function]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut seen = BTreeSet::new();
    for section in sections(page) {
        let mut led_to: Option<BTreeSet<&str>> = None;
        for step in section {
            let at = format!("docs/architecture.md:{}: `{}`", step.number, step.function);
            let is_it = |function: &&Function| function.name == step.function && function.file.ends_with(step.file);
            let Some(found) = functions.iter().find(is_it) else {
                complaints.push(format!("{at} is not in {}", step.file));
                continue;
            };
            if !seen.insert((step.function, step.file)) {
                complaints.push(format!("{at} is a step twice"));
            }
            let name = step.function.rsplit("::").next().unwrap_or(step.function);
            if led_to.as_ref().is_some_and(|names| !names.contains(name)) {
                complaints.push(format!("{at} is named by no step before it"));
            }
            led_to.get_or_insert_default().extend(found.body.iter().map(String::as_str));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions() -> Vec<Function> {
        let function = |file: &str, name: &str, body: &[&str]| Function {
            file: file.into(),
            name: name.into(),
            body: body.iter().map(|&name| name.to_owned()).collect(),
        };
        vec![
            function("x/alloc.rs", "malloc", &["pop", "refill"]),
            function("x/bins.rs", "Bins::pop", &[]),
            function("x/refill.rs", "refill", &["carve"]),
            function("x/span.rs", "carve", &[]),
        ]
    }

    const PAGE: &str = "## malloc\n1. **`malloc`** in `x/alloc.rs`: a\n2. **`Bins::pop`** in `bins.rs`: b\n3. **`refill`** in `refill.rs`\n\
                        4. **`carve`** in `span.rs`\n";

    #[test]
    fn a_path_in_the_order_of_the_calls_holds() {
        assert!(complaints(PAGE, &functions()).is_empty());
    }

    #[test]
    fn a_step_that_moved_or_comes_too_early_or_twice_is_found() {
        for (from, to) in [
            ("`bins.rs`", "`bin.rs`"),
            ("`refill`", "`fill`"),
            ("3. **`refill`** in `refill.rs`\n", ""),
            ("4. **`carve`** in `span.rs`", "4. **`refill`** in `refill.rs`"),
        ] {
            assert!(!complaints(&PAGE.replace(from, to), &functions()).is_empty(), "{from} to {to}");
        }
    }
}
