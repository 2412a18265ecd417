//! What is done for the heap profile without a call of the program: requests are served, and profiles written that are due.
//!
//! ```text
//!  a signal                        ┐
//!  `freestone profile PID`  (page) ┤
//!  so much time                    ├─▶ due ─▶ served by the next slow path of an allocation, or by the background thread
//!  so many bytes, so much growth   ┘          ├ a start: profiling goes on
//!                                             └ a profile: written to its file
//! ```
//!
//! A signal handler only notes the request and wakes the background thread: it needs no stack to speak of, and neither memory nor a lock.
//!
//! The page is a file of a few words (`ProfilePage`) that a process with `heap_profile=ready` keeps; `docs/decisions/0039-requests-for-profiles.md`
//! has the reasons.
//!
//! Threads: any; one at a time serves, and the others go on without waiting. Cost: when nothing can become due, a load and a branch on slow paths that
//! take new blocks into a bin.

use crate::api::profile_files::ProfileFiles;
use crate::api::profile_page::{ProfilePage, Request};
use crate::config::{HeapProfiling, ProfileSignal, Settings};
use crate::heap_profile::recorder::HeapProfile;
use crate::heap_profile::text::{self, Snapshot};
use crate::shared::Shared;
use core::ffi::{CStr, c_int};
use freestone_base::sync::{AtomicBool, AtomicU64, Ordering, fence};
use freestone_os::{Errno, Os, System, process};

/// Milliseconds between two looks at the page.
const PAGE_MS: u32 = 100;

/// See the module header.
pub(super) struct ProfileControl {
    /// Whether anything can become due.
    is_on: AtomicBool,
    is_serving: AtomicBool,
    is_signalled: AtomicBool,
    /// When the page is looked at next, and when the next profile is written; never, if they are the largest number.
    look_ms: AtomicU64,
    write_ms: AtomicU64,
    page: ProfilePage,
}

/// A moment that does not come.
const NEVER: u64 = u64::MAX;

impl ProfileControl {
    /// Nothing becomes due.
    pub(super) const fn new() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            is_serving: AtomicBool::new(false),
            is_signalled: AtomicBool::new(false),
            look_ms: AtomicU64::new(NEVER),
            write_ms: AtomicU64::new(NEVER),
            page: ProfilePage::new(),
        }
    }

    /// Begins to serve what the options ask for, and has `handler` called for the signal that they name.
    pub(super) fn begin(&self, settings: &Settings, handler: extern "C" fn(c_int), now_ms: u64) {
        let looks = settings.heap_profile() == Some(HeapProfiling::Ready);
        if looks {
            self.page.begin();
            // Not at once: shells and other programs that end soon, many of them by `_exit`, leave no file.
            self.look_ms.store(now_ms + u64::from(PAGE_MS), Ordering::Relaxed);
        }
        if let Some(ms) = settings.heap_profile_ms() {
            self.write_ms.store(now_ms + u64::from(ms), Ordering::Relaxed);
        }
        let signal = settings.heap_profile_signal();
        let has_signal = signal.is_some_and(|signal| process::handle_signal(number_of(signal), handler));
        if signal.is_some() && !has_signal {
            freestone_os::report(format_args!(
                "heap_profile_signal: the program handles or ignores this signal already"
            ));
        }
        if looks || has_signal || settings.heap_profile_ms().is_some() {
            self.is_on.store(true, Ordering::Relaxed);
        }
    }

    /// Serves what makes profiles due by bytes, too.
    pub(super) fn serve_triggers(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Whether anything can become due.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Notes that the signal came. In a signal handler.
    pub(super) fn note_signal(&self) {
        self.is_signalled.store(true, Ordering::Relaxed);
    }

    /// Serves what is due: `start` starts profiling, with `false` for no memory. To be called where the thread holds no lock.
    #[cold]
    pub(super) fn serve(&self, shared: &Shared<System>, files: &ProfileFiles, start: fn() -> bool) {
        if self.is_serving.swap(true, Ordering::Acquire) {
            return;
        }
        let errno = process::errno();
        let (profile, settings, now_ms) = (&shared.profile, shared.settings(), shared.os().now_ms());
        if self.is_signalled.load(Ordering::Relaxed) && self.is_signalled.swap(false, Ordering::Relaxed) {
            if profile.is_on() {
                files.write_unasked(settings, profile);
            } else if !start() {
                freestone_os::report(format_args!("heap_profile_signal: there is no memory for profiling"));
            }
        }
        let is_time = settings.heap_profile_ms().is_some_and(|ms| has_come(&self.write_ms, now_ms, ms));
        if (profile.triggers().take() || is_time) && profile.is_on() {
            files.write_unasked(settings, profile);
        }
        if has_come(&self.look_ms, now_ms, PAGE_MS) {
            let answered = self.page.serve(|| profile.is_on(), |request, path| answer(profile, start, request, path));
            if answered.is_err() {
                self.look_ms.store(NEVER, Ordering::Relaxed);
            }
            fence(Ordering::SeqCst);
            if self.look_ms.load(Ordering::Relaxed) == NEVER {
                // The process ends, and may have looked for the page before it was there.
                self.page.remove();
            }
        }
        process::set_errno(errno);
        self.is_serving.store(false, Ordering::Release);
    }

    /// Removes the page: the process ends.
    pub(super) fn end(&self) {
        if !self.is_on() {
            return;
        }
        self.look_ms.store(NEVER, Ordering::Relaxed);
        // Either this thread sees the page that another makes, or that thread sees that no more looks are due.
        fence(Ordering::SeqCst);
        self.page.remove();
    }

    /// In a forked child, which gets a page of its own, and not at once, because most children run another program.
    pub(super) fn forked(&self, now_ms: u64) {
        self.page.forget();
        self.is_serving.store(false, Ordering::Relaxed);
        if self.look_ms.load(Ordering::Relaxed) != NEVER {
            self.look_ms.store(now_ms + u64::from(PAGE_MS), Ordering::Relaxed);
        }
    }
}

/// The kernel's number of a signal.
fn number_of(signal: ProfileSignal) -> c_int {
    match signal {
        ProfileSignal::Usr1 => process::USER_SIGNALS[0],
        ProfileSignal::Usr2 => process::USER_SIGNALS[1],
    }
}

/// Whether a moment has come. It comes again `ms` later, unless it was changed meanwhile: at the process's end it comes no more.
fn has_come(moment: &AtomicU64, now_ms: u64, ms: u32) -> bool {
    let (due_ms, next_ms) = (moment.load(Ordering::Relaxed), now_ms + u64::from(ms));
    now_ms >= due_ms && moment.compare_exchange(due_ms, next_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// Does what a request of the page asks for.
fn answer(profile: &HeapProfile, start: fn() -> bool, request: Request, path: &CStr) -> Result<(), Errno> {
    match request {
        Request::Start if profile.is_on() => Ok(()),
        Request::Start => start().then_some(()).ok_or(Errno::NOMEM),
        Request::Stop => {
            profile.stop();
            Ok(())
        }
        Request::Live => text::write_private(profile, path, Snapshot::Live),
        Request::Peak => text::write_private(profile, path, Snapshot::Peak),
    }
}

/// Milliseconds between two rounds of the background thread, so that all is served in time; `None`: none are needed. Without a thread of the program that
/// allocates, requests would wait.
pub(super) fn round_ms(settings: &Settings) -> Option<u32> {
    let looks = settings.heap_profile() == Some(HeapProfiling::Ready);
    looks.then_some(PAGE_MS).into_iter().chain(settings.heap_profile_ms()).min()
}

/// Whether a background thread is needed, so that all is served although the program makes no calls.
pub(super) fn needs_thread(settings: &Settings) -> bool {
    round_ms(settings).is_some() || settings.heap_profile_signal().is_some()
}

#[cfg(test)]
mod tests;
