//! The page of statistics in a file, which `freestone top` and `freestone run` read while the process lives and after it was killed.
//!
//! ```text
//!  start ─▶ created ─▶ updated: from slow paths of allocations, and from the background thread ─▶ exit: a last state, and removed
//!             │ fork, in the child: not mapped; a page of its own an interval later, if the path has the process's number
//!             └─▶ killed: the file stays, with a whole state (`stats::live_page`), and the next process of that number replaces it
//! ```
//!
//! `docs/decisions/0033-a-page-of-live-statistics.md` has the reasons.
//!
//! Threads: any; one at a time writes, and the others go on without waiting. Cost: when off, a load and a branch on slow paths that take new
//! blocks into a bin.

use crate::api::file_name::{self, FileName};
use crate::api::snapshot;
use crate::config::words::is_word;
use crate::config::{Mistake, Settings};
use crate::shared::Shared;
use crate::stats::live_page::{self, PAGE_WORDS, Words};
use crate::thread::life::Threads;
use core::ffi::CStr;
use freestone_base::sync::{AtomicBool, AtomicU64, Ordering, fence};
use freestone_os::{Errno, Os, SharedWords, System, clock, process};

/// Milliseconds between two states, or more.
pub(super) const INTERVAL_MS: u32 = 100;

/// Writing states takes at most one part in this many of a thread's processor time.
const SHARE: u64 = 50;

/// The words that choose the path, or none.
const ON: &[u8] = b"on";
/// See [`ON`].
const OFF: &[u8] = b"off";

/// The name of the file if none is given.
const DEFAULT_NAME: &[u8] = b"/freestone-%p.live";

/// See the module header.
pub(super) struct LivePage {
    words: SharedWords<PAGE_WORDS>,
    is_on: AtomicBool,
    is_writing: AtomicBool,
    /// When the next state is due.
    due_ms: AtomicU64,
}

impl LivePage {
    /// No page.
    pub(super) const fn new() -> Self {
        Self {
            words: SharedWords::none(),
            is_on: AtomicBool::new(false),
            is_writing: AtomicBool::new(false),
            due_ms: AtomicU64::new(0),
        }
    }

    /// Turns the page on if the options say so. At a path of the user's the first state is due at once; at the default one an interval later, so that
    /// shells and other programs that end soon, many of them by `_exit`, leave no file.
    /// If they do not, the clock is not read.
    pub(super) fn begin(&self, settings: &Settings, clock: impl FnOnce() -> u64) {
        if !settings.live_path().is_set() || settings.sandbox() {
            return;
        }
        let wait_ms = if is_default(settings) { u64::from(INTERVAL_MS) } else { 0 };
        self.due_ms.store(clock() + wait_ms, Ordering::Relaxed);
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Whether there is a page, or will be.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Writes a state if one is due. To be called where the thread holds no lock.
    #[cold]
    pub(super) fn update_if_due(&self, shared: &Shared<System>, threads: &Threads<System>) {
        let (now_ms, due_ms) = (shared.os().now_ms(), self.due_ms.load(Ordering::Relaxed));
        if now_ms >= due_ms
            && self.is_on()
            && self
                .due_ms
                .compare_exchange(due_ms, now_ms + u64::from(INTERVAL_MS), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            let began_us = clock::thread_cpu_us();
            self.update(shared, threads);
            // With very many heaps a state takes long; it is written less often then. Not where the thread only waited for a processor or a disk.
            let took_us = clock::thread_cpu_us().saturating_sub(began_us);
            self.due_ms.fetch_max(now_ms + took_us * SHARE / 1000, Ordering::Relaxed);
        }
    }

    /// Writes a state, unless another thread is writing one.
    fn update(&self, shared: &Shared<System>, threads: &Threads<System>) {
        if self.is_writing.swap(true, Ordering::Acquire) {
            return;
        }
        if let Some(words) = self.words.get().or_else(|| self.create(shared.settings())) {
            let now_ms = shared.os().now_ms();
            // Without memory for the rows the page keeps its last state.
            let _ = snapshot::with_details(shared, threads, |details| live_page::write(words, now_ms, details));
        }
        self.is_writing.store(false, Ordering::Release);
    }

    /// Creates the file. If that fails, says why and turns the page off.
    fn create(&self, settings: &Settings) -> Option<&'static Words> {
        let name = path_of(settings)?;
        let Some(path) = c_path(&name) else { return self.refuse(c"?", Errno::NAME_TOO_LONG) };
        let mut created = self.words.create(path);
        if matches!(created, Err(Errno::EXIST)) {
            match leftover(path) {
                Leftover::None => {}
                // The parent's, whose path has no number in it.
                Leftover::OfAnother => {
                    self.is_on.store(false, Ordering::Relaxed);
                    return None;
                }
                Leftover::OfGone => {
                    let _ = SharedWords::<PAGE_WORDS>::remove(path);
                    created = self.words.create(path);
                }
            }
        }
        match created {
            Ok(words) => {
                live_page::begin(words, process::id(), INTERVAL_MS);
                fence(Ordering::SeqCst);
                if self.is_on() {
                    return Some(words);
                }
                // The process ends, and may have looked for the file before it was there.
                let _ = SharedWords::<PAGE_WORDS>::remove(path);
                None
            }
            Err(errno) => self.refuse(path, errno),
        }
    }

    /// Says why there is no page, and turns it off.
    #[inline(never)]
    fn refuse(&self, path: &CStr, errno: Errno) -> Option<&'static Words> {
        self.is_on.store(false, Ordering::Relaxed);
        freestone_os::report(format_args!(
            "option live: cannot create {}: {errno}; set FREESTONE_LIVE to another path",
            path.to_str().unwrap_or("?"),
        ));
        None
    }

    /// Writes a last state and removes the file: the process ends. Where there is none yet, no thread makes one from now on.
    pub(super) fn end(&self, shared: &Shared<System>, threads: &Threads<System>) {
        let was_on = self.is_on.swap(false, Ordering::Relaxed);
        // Either this thread sees the file that another makes, or that thread sees that the page is off.
        fence(Ordering::SeqCst);
        if was_on && self.words.get().is_some() {
            self.update(shared, threads);
            if let Some(path) = path_of(shared.settings()).as_ref().and_then(c_path) {
                let _ = SharedWords::<PAGE_WORDS>::remove(path);
            }
        }
    }

    /// In a forked child, which has no mapping: it gets a page of its own if its path is another one, and not at once, because most children
    /// run another program.
    pub(super) fn forked(&self, shared: &Shared<System>) {
        self.words.forget();
        self.is_writing.store(false, Ordering::Relaxed);
        if self.is_on() {
            self.is_on.store(has_number(shared.settings()), Ordering::Relaxed);
            self.due_ms.store(shared.os().now_ms() + u64::from(INTERVAL_MS), Ordering::Relaxed);
        }
    }
}

/// A file that is in the way.
enum Leftover {
    /// It is no page of statistics that this process may read.
    None,
    /// A page whose process is gone, or had this process's number.
    OfGone,
    /// A page whose process lives.
    OfAnother,
}

fn leftover(path: &CStr) -> Leftover {
    match SharedWords::open_own(path).map(live_page::process_of) {
        Ok(Ok(number)) if number == process::id() || !process::is_running(number) => Leftover::OfGone,
        Ok(Ok(_)) => Leftover::OfAnother,
        _ => Leftover::None,
    }
}

/// Stores the path that a value of the option means.
///
/// # Errors
/// It is too long.
pub(super) fn set_path(settings: &Settings, value: &[u8]) -> Result<(), Mistake> {
    if is_word(value, OFF) {
        return settings.live_path().set(b"");
    }
    if !is_word(value, ON) {
        return settings.live_path().set(value);
    }
    let in_folder = |folder: &[u8]| settings.live_path().set_joined(folder, DEFAULT_NAME, true);
    let mut result = None;
    process::for_each_environment(|entry| {
        let folder = entry.strip_prefix(b"XDG_RUNTIME_DIR=").filter(|folder| folder.starts_with(b"/"));
        result = folder.map(in_folder).or(result);
    });
    result.unwrap_or_else(|| in_folder(b"/tmp"))
}

/// Whether the path is the default one.
fn is_default(settings: &Settings) -> bool {
    settings.live_path().load().is_some_and(|path| path.as_c().to_bytes().ends_with(DEFAULT_NAME))
}

/// Whether the path has the process's number in it.
fn has_number(settings: &Settings) -> bool {
    settings.live_path().load().is_some_and(|path| file_name::has(path.as_c().to_bytes(), b'p'))
}

/// The path of this process's page, ended by a zero byte; `None` if none is set.
fn path_of(settings: &Settings) -> Option<FileName> {
    let template = settings.live_path().load()?;
    let value = |letter, text: &mut FileName| letter == b'p' && write!(text, "{}", process::id()).is_ok();
    let mut path = FileName::new();
    file_name::expand(&mut path, template.to_bytes(), &value);
    Some(path)
}

/// `None` if the process's number makes the path too long.
fn c_path(path: &FileName) -> Option<&CStr> {
    CStr::from_bytes_until_nul(path.as_bytes()).ok()
}

#[cfg(test)]
mod tests;
