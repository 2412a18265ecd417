//! `freestone options`: the library's options, each with its value in this environment, the source of that value, and its effect.
//!
//! The table comes from the heap ([`freestone::options::OPTIONS`]).

use crate::allocator::option_value::{PREFIX, variable};
use crate::show::table::{self, TextTable};
use crate::suggestion;
use anyhow::Result;
use freestone::door::Settings;
use freestone::options::{OPTIONS, OptionSpec, PROFILES, Unit};
use serde_json::json;

/// Variables that begin so and are not the library's options, but the lab's.
const NO_OPTIONS: [&str; 1] = ["FREESTONE_LIBRARY"];

/// The options of `freestone options`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the table.
///
/// # Errors
/// The table cannot be written as JSON.
pub(crate) fn main(options: &Options) -> Result<()> {
    mistakes().iter().for_each(|mistake| eprintln!("warning: {mistake}"));
    if options.json {
        let rows: Vec<_> = OPTIONS.iter().map(as_json).collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    let header = ["option", "value", "from", "default", "unit", "range", "effect"].map(str::to_owned);
    let mut table = table::text(&header);
    for spec in OPTIONS {
        let (value, source) = current(spec);
        let row = [
            variable(spec.key),
            value,
            source.into(),
            spec.default().into(),
            unit(spec),
            spec.range().to_string(),
            spec.effect().into(),
        ];
        table.add_row(row);
    }
    println!("{table}\n\nProfiles: what the option profile sets");
    println!("{}", profiles());
    println!(
        "Set an option in the environment (NAME=value), in the link-time symbol freestone_options (key=value,…), or through the API."
    );
    Ok(())
}

/// The table of profiles.
fn profiles() -> TextTable {
    let mut table = table::text(&["profile", "for", "sets"].map(str::to_owned));
    for profile in PROFILES {
        table.add_row([profile.name, profile.purpose(), &profile.options.replace(',', ", ")]);
    }
    table
}

/// A message for each variable of the environment that looks like one of Freestone's options and is none, or has a value that it cannot have.
fn mistakes() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> =
        names.filter(|name| name.starts_with(PREFIX) && !NO_OPTIONS.contains(&name.as_str())).collect();
    names.sort();
    let known: Vec<String> = OPTIONS.iter().map(|spec| variable(spec.key)).collect();
    let mistake = |name: &String| match known.iter().position(|key| key == name) {
        None => Some(suggestion::unknown_after(PREFIX, "option", name, known.iter().map(String::as_str))),
        Some(option) => {
            let value = std::env::var_os(name)?;
            Settings::new().set(option, value.as_encoded_bytes()).err()?;
            let range = OPTIONS[option].range();
            Some(format!("'{name}={}' is ignored: {name} takes {range}", value.to_string_lossy()))
        }
    };
    names.iter().filter_map(mistake).collect()
}

/// Whether the heap has an option with this environment variable.
pub(crate) fn exists(environment_name: &str) -> bool {
    OPTIONS.iter().any(|spec| variable(spec.key) == environment_name)
}

/// The value of an option in this environment, and where it comes from.
fn current(spec: &OptionSpec) -> (String, &'static str) {
    if let Some(value) = accepted(spec.key) {
        return (value, "environment");
    }
    let chosen =
        accepted("profile").and_then(|name| PROFILES.iter().find(|profile| name.eq_ignore_ascii_case(profile.name)));
    let mut options =
        chosen.into_iter().flat_map(|profile| profile.options.split(',')).filter_map(|it| it.split_once('='));
    match options.find(|(key, _)| *key == spec.key) {
        Some((_, value)) => (value.to_owned(), "profile"),
        None => (spec.default().to_owned(), "default"),
    }
}

/// The value that the environment gives an option, unless the library ignores it.
fn accepted(key: &str) -> Option<String> {
    let index = OPTIONS.iter().position(|spec| spec.key == key)?;
    let value = std::env::var_os(variable(OPTIONS[index].key))?;
    Settings::new().set(index, value.as_encoded_bytes()).ok()?;
    Some(value.to_string_lossy().into_owned())
}

fn unit(spec: &OptionSpec) -> String {
    match spec.unit {
        Unit::Milliseconds => "ms".into(),
        Unit::Bytes => "bytes (k, m, g)".into(),
        Unit::Blocks => "blocks".into(),
        Unit::Allocations => "allocations".into(),
        Unit::Words(_) => "word".into(),
        Unit::Path => "path".into(),
        _ => "number".into(),
    }
}

fn as_json(spec: &OptionSpec) -> serde_json::Value {
    let (value, source) = current(spec);
    json!({
        "key": spec.key, "environment": variable(spec.key), "value": value, "source": source, "default": spec.default(),
        "unit": unit(spec), "range": spec.range().to_string(), "effect": spec.effect(),
    })
}
