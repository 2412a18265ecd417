//! Values of Freestone's options and their environment variables. Values are judged by the library's own parser before a program is started with them.

use freestone::door::{Settings, key};
use freestone::options::OPTIONS;

/// What the environment variables of options begin with.
pub(crate) const PREFIX: &str = "FREESTONE_";

/// The environment variable of an option.
pub(crate) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_uppercase())
}

/// Checks a value of the option with this number.
///
/// # Errors
/// The option cannot have it; the text says what it takes.
pub(crate) fn check(option: usize, value: &[u8]) -> Result<(), String> {
    let spec = &OPTIONS[option];
    let text = |mistake| format!("{mistake}; {} takes {}", spec.key, spec.range());
    Settings::new().set(option, value).map_err(text)
}

/// The options that the environment sets, as names of variables and values.
pub(crate) fn in_environment() -> Vec<(String, String)> {
    let set = |name: String| std::env::var_os(&name).map(|value| (name, value.to_string_lossy().into_owned()));
    OPTIONS.iter().filter_map(|spec| set(variable(spec.key))).collect()
}

/// Parses, for the command line, how many bytes are allocated for one that is sampled.
///
/// # Errors
/// The option `heap_profile_interval` cannot have this value.
pub(crate) fn sampling_interval(text: &str) -> Result<String, String> {
    check(key::HEAP_PROFILE_INTERVAL, text.as_bytes()).map(|()| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::sampling_interval;

    #[test]
    fn an_interval_is_a_number_of_bytes_above_0() {
        assert_eq!(["1", "64k", "1M"].map(|text| sampling_interval(text).is_ok()), [true; 3]);
        for text in ["0", "abc", "", "-1", "64kb"] {
            assert!(
                sampling_interval(text).unwrap_err().ends_with("heap_profile_interval takes 1 to 1099511627776"),
                "{text}"
            );
        }
    }
}
