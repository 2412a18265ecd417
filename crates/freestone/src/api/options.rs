//! Applying options: from the environment, then the link-time symbol, then the API; the last one wins.
#![allow(unsafe_code)]
//!
//! Unknown or malformed ones are reported, once, and ignored. Nothing acts when the process is more privileged than its caller.
//!
//! # Safety
//! `freestone_options` is weak: its address is null unless the program defines it, and then it is a C string by contract.

use crate::api::{global, report};
use crate::config::{self, Mistake, Settings, key};
use core::ffi::{CStr, c_char};
use core::str;
use freestone_os::process;

/// What environment variables of ours start with.
const PREFIX: &[u8] = b"FREESTONE_";

core::arch::global_asm!(
    ".weak freestone_options",
    ".pushsection .data.rel.ro.freestone_0_1_0_options,\"aw\",@progbits",
    ".globl freestone_0_1_0_options",
    ".hidden freestone_0_1_0_options",
    ".p2align 3",
    "freestone_0_1_0_options:",
    ".quad freestone_options",
    ".popsection",
);

unsafe extern "C" {
    /// Address of the program's `freestone_options`, or null.
    #[link_name = "freestone_0_1_0_options"]
    static LINKED: *const c_char;
}

/// Reads environment and symbol into `settings`.
pub(super) fn apply_all(settings: &Settings) {
    if process::is_secure() {
        return;
    }
    // A profile counts as if it had been said first, wherever it stands.
    for profile in [true, false] {
        for_each(|name, value, source| {
            if (config::find(name) == Some(key::PROFILE)) == profile {
                apply(settings, name, value, source);
            }
        });
    }
}

/// Calls `visit` with name, value and source of each option in the environment, then of those in the link-time symbol.
fn for_each(mut visit: impl FnMut(&[u8], &[u8], &str)) {
    process::for_each_environment(|entry| {
        if let Some(option) = entry.strip_prefix(PREFIX) {
            let (name, value) = split(option);
            visit(name, value, "environment");
        }
    });
    // SAFETY: see the module header.
    let linked = unsafe { if LINKED.is_null() { &[][..] } else { CStr::from_ptr(LINKED).to_bytes() } };
    for option in linked.split(|&byte| byte == b',').filter(|option| !option.is_empty()) {
        let (name, value) = split(option);
        visit(name, value, "freestone_options");
    }
}

fn split(option: &[u8]) -> (&[u8], &[u8]) {
    match option.iter().position(|&byte| byte == b'=') {
        Some(at) => (&option[..at], &option[at + 1..]),
        None => (option, &[]),
    }
}

fn apply(settings: &Settings, name: &[u8], value: &[u8], source: &str) {
    if let Err(mistake) = set_at_start(settings, name, value) {
        let (name, value) = (str::from_utf8(name).unwrap_or("?"), str::from_utf8(value).unwrap_or("?"));
        freestone_os::report(format_args!(
            "option {name}={value} ({source}) ignored: {mistake}; `freestone options` lists them"
        ));
    }
}

fn set_at_start(settings: &Settings, name: &[u8], value: &[u8]) -> Result<(), Mistake> {
    let index = config::find(name).ok_or(Mistake::UnknownKey)?;
    settings.set(index, value)?;
    if index == key::REPORT {
        report::set_path(value)?;
    }
    Ok(())
}

/// Sets an option by name, as the last word.
///
/// # Errors
/// There is no such option, or the value is not of its unit; nothing has changed then.
pub fn set(name: &str, value: &str) -> Result<(), Mistake> {
    // Started first, so that what environment and symbol say does not come later.
    global::start();
    let index = config::find(name.as_bytes()).ok_or(Mistake::UnknownKey)?;
    if index == key::REPORT {
        return Err(Mistake::OnlyAtStart);
    }
    let (pages, settings) = (&global::shared().pages, global::shared().settings());
    let before = settings.get(index);
    settings.set(index, value.as_bytes())?;
    if matches!(index, key::LIMIT | key::LIMIT_HARD) && settings.get(index) < pages.limited_bytes() {
        settings.store(index, before);
        return Err(Mistake::BelowUse);
    }
    global::background().option_changed();
    Ok(())
}

/// The value of an option as a number (see [`Settings::get`]).
#[must_use]
pub fn get(name: &str) -> Option<usize> {
    global::start();
    config::find(name.as_bytes()).map(|index| global::shared().settings().get(index))
}
