//! Figures as text: three significant digits and a unit.

/// Nanoseconds as ns, µs, ms or s.
pub(crate) fn time(nanoseconds: f64) -> String {
    scaled(nanoseconds, 1000.0, &["ns", "µs", "ms", "s"])
}

/// Bytes as KiB, MiB or GiB.
pub(crate) fn bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A count with a space after every three digits.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Three significant digits; a value that rounds up to the next power of ten has the digits of that.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A figure of unknown kind: a whole number as a count, any other with three significant digits.
pub(crate) fn figure(value: f64) -> String {
    let is_count = value.fract() == 0.0 && (0.0..1e15).contains(&value);
    if is_count { count(value as u64) } else { digits(value) }
}

/// The usual name of a percentile: `p99.9`, or `slowest` for 100.
pub(crate) fn percentile(percentile: f64) -> String {
    if percentile >= 100.0 { "slowest".into() } else { format!("p{percentile}") }
}

/// A number with its noun: `1 process`, `2 processes`.
pub(crate) fn counted(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { several })
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    // Nothing has no digits: `0.00 ns` would claim a precision.
    if value == 0.0 {
        return format!("0 {}", units.first().copied().unwrap_or_default());
    }
    let mut value = value;
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for larger in units {
        if value.abs() < step * 0.9995 {
            break;
        }
        value /= step;
        unit = larger;
    }
    format!("{} {unit}", digits(value))
}

#[cfg(test)]
mod tests;
