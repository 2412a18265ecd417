//! What the kernel counted of one run of a command: the record that goes from the launcher to the lab and into the results file.

use serde::{Deserialize, Serialize};

/// One run of a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CommandRecord {
    /// Exit status, or 128 + the number of the signal that ended the command.
    pub(crate) exit: i32,
    /// The signal that ended the command; a command may also exit with a status above 128.
    #[serde(default)]
    pub(crate) signal: Option<i32>,
    /// Why the command could not be started.
    pub(crate) start_error: Option<String>,
    /// Wall-clock time from fork to exit, in nanoseconds.
    pub(crate) wall_ns: u64,
    /// Processor time in user mode of the command and the children it waited for, in nanoseconds.
    pub(crate) user_ns: u64,
    /// Processor time of them in the kernel, in nanoseconds.
    pub(crate) system_ns: u64,
    /// Page faults that needed no reading from a disk.
    pub(crate) minor_faults: u64,
    /// Times that one of these processes gave up its processor or lost it.
    #[serde(default)]
    pub(crate) context_switches: u64,
    /// Largest resident size of the largest of these processes.
    pub(crate) peak_rss_bytes: u64,
    /// Whether the preloaded library was mapped when the command exited; `None` if the command was not watched, or could not be.
    pub(crate) was_mapped: Option<bool>,
    /// What the processes of a server held a second after its client had ended, shared memory in proportion; `None` for a command.
    #[serde(default)]
    pub(crate) settled_bytes: Option<u64>,
}

impl CommandRecord {
    /// The record of a command that could not be started; `exit` is the status that a shell gives.
    pub(crate) fn not_started(exit: i32, error: String) -> Self {
        Self {
            exit,
            signal: None,
            start_error: Some(error),
            wall_ns: 0,
            user_ns: 0,
            system_ns: 0,
            minor_faults: 0,
            context_switches: 0,
            peak_rss_bytes: 0,
            was_mapped: None,
            settled_bytes: None,
        }
    }

    /// How the command ended: its exit status, or the signal by number and name.
    pub(crate) fn ending(&self) -> String {
        const NAMED: [(i32, &str); 11] = [
            (libc::SIGHUP, "SIGHUP"),
            (libc::SIGINT, "SIGINT"),
            (libc::SIGQUIT, "SIGQUIT"),
            (libc::SIGILL, "SIGILL"),
            (libc::SIGABRT, "SIGABRT"),
            (libc::SIGBUS, "SIGBUS"),
            (libc::SIGFPE, "SIGFPE"),
            (libc::SIGKILL, "SIGKILL"),
            (libc::SIGSEGV, "SIGSEGV"),
            (libc::SIGPIPE, "SIGPIPE"),
            (libc::SIGTERM, "SIGTERM"),
        ];
        let Some(signal) = self.signal else { return format!("exit status {}", self.exit) };
        match NAMED.iter().find(|(number, _)| *number == signal) {
            Some((_, name)) => format!("ended by signal {signal} ({name})"),
            None => format!("ended by signal {signal}"),
        }
    }
}

#[cfg(test)]
impl CommandRecord {
    /// A record for tests: a command that took `wall_ns` and `peak_rss_bytes`.
    pub(crate) fn example(wall_ns: u64, peak_rss_bytes: u64) -> Self {
        let started = Self { start_error: None, ..Self::not_started(0, String::new()) };
        Self { wall_ns, user_ns: 5000, minor_faults: 100, peak_rss_bytes, ..started }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_named_and_a_status_is_a_number_even_if_it_is_that_of_a_signal() {
        let ended = |exit, signal| CommandRecord { signal, ..CommandRecord::not_started(exit, String::new()) }.ending();
        assert_eq!(ended(139, Some(11)), "ended by signal 11 (SIGSEGV)");
        assert_eq!(ended(128 + 64, Some(64)), "ended by signal 64");
        assert_eq!(ended(3, None), "exit status 3");
        assert_eq!(ended(139, None), "exit status 139", "a status that the command chose");
    }
}
