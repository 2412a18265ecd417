//! Flame graphs as SVG, which follow the reader's choice of light or dark.

use anyhow::{Context, Result};
use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Palette};
use inferno::flamegraph::{self, Options};

/// Colours of a dark page; the frames keep theirs, with dark text on them.
const DARK: &str = "@media (prefers-color-scheme: dark) { #background stop { stop-color: #16191d } \
                    svg > text { fill: #e6e8ea } #frames text { fill: #000 } }";

/// Draws collapsed stacks, or those of a change. `None` if there are none.
///
/// # Errors
/// The lines are not collapsed stacks.
pub(crate) fn draw(title: &str, lines: &[String]) -> Result<Option<String>> {
    if lines.is_empty() {
        return Ok(None);
    }
    let mut options = Options::default();
    options.title = title.to_owned();
    options.count_name = "bytes".to_owned();
    options.colors = Palette::Basic(BasicPalette::Mem);
    options.bgcolors = Some(BackgroundColor::Flat((255, 255, 255).into()));
    options.font_type = "monospace".to_owned();
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
        .context("the flame graph cannot be drawn")?;
    let svg = String::from_utf8_lossy(&svg).replacen("</style>", &format!("{DARK}\n</style>"), 1);
    Ok(Some(svg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flame_graph_has_its_functions_and_both_colour_schemes() {
        let svg = draw("Live memory", &["main;a<b> 10".into(), "main;c 5".into()]).unwrap().unwrap();
        for part in ["Live memory", "a&lt;b&gt;", "prefers-color-scheme: dark"] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(draw("x", &[]).unwrap().is_none());
        assert!(draw("x", &["main;a 10 20".into()]).unwrap().is_some());
    }
}
