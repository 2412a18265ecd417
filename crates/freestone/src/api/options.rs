//! Reading options: from the environment, then the link-time symbol, then calls of the API; the last value of an option wins.
//!
//! An unknown name or malformed value is reported on standard error and ignored. When the process is more privileged than its caller,
//! environment and symbol can raise the option `harden`, and nothing else.

use crate::api::live;
use crate::config::{self, Harden, Mistake, Settings, key, pair, pairs};
use crate::shared::Shared;
use core::fmt::{self, Write};
use core::str;
use freestone_os::weak_symbols::linked_options;
use freestone_os::{Os, process};

/// How messages call the environment.
const ENVIRONMENT: &str = "environment";

/// Prefix of the environment variables that set options.
const PREFIX: &[u8] = b"FREESTONE_";

/// The most of a name or value that is in a message.
const SHOWN_BYTES: usize = 100;

/// Applies the options of environment and symbol to `settings`.
pub(super) fn apply_all(settings: &Settings) {
    if process::is_secure() {
        for_each(|name, value, _| raise_harden(settings, name, value));
        return;
    }
    // A profile counts as if it came first, wherever it stands: explicit options override it.
    for is_profile in [true, false] {
        for_each(|name, value, source| {
            if (config::find(name) == Some(key::PROFILE)) == is_profile {
                if let Err(mistake) = set_at_start(settings, name, value) {
                    report_ignored(name, value, source, mistake);
                }
            }
        });
    }
}

/// Applies the option of a process that is more privileged than its caller: it can only make the level of `harden` higher than it is. Ignores
/// all others without a message, as the caller must not learn more than from another program.
fn raise_harden(settings: &Settings, name: &[u8], value: &[u8]) {
    if config::find(name) == Some(key::HARDEN) {
        if let Ok(level) = Harden::of_word(value) {
            if level > settings.harden() {
                settings.store(key::HARDEN, level as usize);
            }
        }
    }
}

/// Calls `visit` with name, value and source of each option in the environment, then of those in the link-time symbol.
fn for_each(mut visit: impl FnMut(&[u8], &[u8], &str)) {
    process::for_each_environment(|entry| {
        if let Some(option) = entry.strip_prefix(PREFIX) {
            let (name, value) = pair(option);
            // Where the command `freestone` finds this library is no option.
            if name != b"LIBRARY" {
                visit(name, value, ENVIRONMENT);
            }
        }
    });
    for (name, value) in pairs(linked_options()) {
        visit(name, value, "freestone_options");
    }
}

fn set_at_start(settings: &Settings, name: &[u8], value: &[u8]) -> Result<(), Mistake> {
    let index = config::find(name).ok_or(Mistake::UnknownKey)?;
    settings.set(index, value)?;
    match index {
        key::REPORT => settings.report_file().set(value),
        key::LIVE => live::set_path(settings, value),
        key::RECORD => settings.record_path().set(value),
        key::HEAP_PROFILE_FILE => settings.heap_profile_file().set(value),
        _ => Ok(()),
    }
}

fn report_ignored(name: &[u8], value: &[u8], source: &str, mistake: Mistake) {
    let is_variable = source == ENVIRONMENT;
    let similar = (mistake == Mistake::UnknownKey).then(|| config::nearest(name)).flatten();
    let similar = Similar { key: similar, is_variable };
    let (name, value) = (shown(name), shown(value));
    let prefix = if is_variable { str::from_utf8(PREFIX).unwrap_or("?") } else { "" };
    freestone_os::report(format_args!(
        "option {prefix}{name}={value} ({source}) ignored: {mistake}{similar}; `freestone options` lists them"
    ));
}

/// What a message has of a name or value: so much that there is room for the reason.
fn shown(text: &[u8]) -> &str {
    str::from_utf8(text.get(..SHOWN_BYTES).unwrap_or(text)).unwrap_or("?")
}

/// Asks whether another option was meant, if there is a similar one; it is named as it has to be written.
struct Similar {
    key: Option<&'static str>,
    is_variable: bool,
}

impl fmt::Display for Similar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(key) = self.key else { return Ok(()) };
        f.write_str(", did you mean `")?;
        if self.is_variable {
            f.write_str(str::from_utf8(PREFIX).unwrap_or("?"))?;
            key.chars().try_for_each(|letter| f.write_char(letter.to_ascii_uppercase()))?;
        } else {
            f.write_str(key)?;
        }
        f.write_str("`?")
    }
}

/// Sets the option `name` of an allocator that has started.
///
/// # Errors
/// There is no such option, the value is not valid for it, it is only read at the start, it comes after the first allocation and is too late,
/// or it is a limit below what is in use. Nothing has changed then.
pub(super) fn set<O: Os>(shared: &Shared<O>, name: &str, value: &str) -> Result<(), Mistake> {
    let index = config::find(name.as_bytes()).ok_or(Mistake::UnknownKey)?;
    let is_of_profile =
        matches!(index, key::HEAP_PROFILE | key::HEAP_PROFILE_FILE | key::HEAP_PROFILE_SIGNAL | key::HEAP_PROFILE_MS);
    if is_of_profile || matches!(index, key::REPORT | key::LIVE | key::RECORD | key::SANDBOX) {
        return Err(Mistake::OnlyAtStart);
    }
    if index == key::HARDEN && shared.usage.has_had_heaps() {
        // A word that is no level is reported as that, not as too late.
        return Harden::of_word(value.as_bytes()).and(Err(Mistake::TooLate));
    }
    if matches!(index, key::LIMIT | key::LIMIT_HARD) {
        return shared.pages.set_limit(index, Settings::number(index, value.as_bytes())?);
    }
    shared.settings().set(index, value.as_bytes())
}

/// The value of the option `name` as a number (see [`Settings::get`]); `None` if there is no such option.
pub(super) fn get(settings: &Settings, name: &str) -> Option<usize> {
    config::find(name.as_bytes()).map(|index| settings.get(index))
}

#[cfg(test)]
mod tests;
