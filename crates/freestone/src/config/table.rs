//! The option table as the lines of `docs/tuning.md`.

use super::{OPTIONS, OptionSpec, Unit};
use std::format;
use std::string::String;

fn line(spec: &OptionSpec) -> String {
    let unit = match spec.unit {
        Unit::Milliseconds => "milliseconds",
        Unit::Bytes => "bytes, with `k`, `m`, `g`",
        Unit::Blocks => "blocks",
        Unit::Words(_) => "a word",
        Unit::Path => "a path",
    };
    let default = if spec.default.is_empty() { String::from("none") } else { format!("`{}`", spec.default) };
    format!(
        "| `{}` | `FREESTONE_{}` | {unit} | {default} | {} | {} |",
        spec.key,
        spec.key.to_uppercase(),
        spec.range,
        spec.effect
    )
}

#[test]
fn the_tuning_page_has_every_option_as_the_table_says() {
    let page = include_str!("../../../../docs/tuning.md");
    for spec in &OPTIONS {
        assert!(page.lines().any(|of_page| of_page == line(spec)), "docs/tuning.md lacks this line:\n{}", line(spec));
    }
}
