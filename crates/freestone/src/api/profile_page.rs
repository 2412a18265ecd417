//! The page through which `freestone profile PID` asks a process for its heap profile.
//!
//! ```text
//!  word 0   magic number, which has the version in it       freestone-PID.profile, in $XDG_RUNTIME_DIR or /tmp
//!       1   number of the process
//!       2   request: its number × 256 + what is asked for   written by the asker, into the file
//!       3   the last request that was answered              written by the process, after
//!       4   its error number; 0: it was done
//!       5   1: profiling is on
//! ```
//!
//! A profile that is asked for is written to a file whose name is that of the page, `.heap` behind it; the asker removes it.
//!
//! Threads: one at a time.

use crate::api::file_name::FileName;
use crate::config::path_value::PathValue;
use core::ffi::CStr;
use freestone_base::sync::Ordering;
use freestone_os::{Errno, SharedWords, process};

/// Words of the page.
pub const PAGE_WORDS: usize = 6;

/// How the page begins.
pub const MAGIC: u64 = 0x6672_7374_7072_6f01;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Request {
    /// Profiling is to be on.
    Start = 1,
    /// Profiling is to be off.
    Stop = 2,
    /// A profile of what is live.
    Live = 3,
    /// A profile of what was live at the peak.
    Peak = 4,
}

impl Request {
    fn of(word: u64) -> Option<Self> {
        [Self::Start, Self::Stop, Self::Live, Self::Peak].into_iter().find(|&request| request as u64 == word % 256)
    }
}

/// See the module header.
pub(super) struct ProfilePage {
    words: SharedWords<PAGE_WORDS>,
    /// Where the file is; `/tmp` if it is not set.
    folder: PathValue,
}

impl ProfilePage {
    /// No page.
    pub(super) const fn new() -> Self {
        Self { words: SharedWords::none(), folder: PathValue::new() }
    }

    /// Reads from the environment where the page is to be. While the allocator starts: later the program may change its environment.
    pub(super) fn begin(&self) {
        process::for_each_environment(|entry| {
            if let Some(folder) = entry.strip_prefix(b"XDG_RUNTIME_DIR=").filter(|folder| folder.starts_with(b"/")) {
                // A folder with a name that is too long is as none.
                let _ = self.folder.set(folder);
            }
        });
    }

    /// Has `answer` answer the request that is in the page, with the path for a profile, and notes whether profiling is on, before and after that. Creates
    /// the page first if there is none.
    ///
    /// # Errors
    /// The page cannot be created, which was said.
    #[inline(never)]
    pub(super) fn serve(
        &self,
        is_on: impl Fn() -> bool,
        answer: impl FnOnce(Request, &CStr) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let Some([_, _, request, answered, error, on]) = self.words.get() else { return self.create() };
        let note = || on.store(u64::from(is_on()), Ordering::Relaxed);
        note();
        let asked = request.load(Ordering::Acquire);
        if asked == answered.load(Ordering::Relaxed) {
            return Ok(());
        }
        let name = self.path(".profile.heap");
        let done = match (Request::of(asked), c_path(&name)) {
            (Some(request), Some(path)) => answer(request, path),
            _ => Err(Errno::INVAL),
        };
        error.store(done.err().map_or(0, |errno| u64::from(errno.0.unsigned_abs())), Ordering::Relaxed);
        note();
        answered.store(asked, Ordering::Release);
        Ok(())
    }

    fn create(&self) -> Result<(), Errno> {
        let name = self.path(".profile");
        let Some(path) = c_path(&name) else { return Err(Errno::INVAL) };
        let mut created = self.words.create(path);
        // What another process of this number has left. Of another user it cannot be removed.
        if matches!(created, Err(Errno::EXIST)) && is_page(path) && SharedWords::<PAGE_WORDS>::remove(path).is_ok() {
            created = self.words.create(path);
        }
        let [magic, number, ..] = created.inspect_err(|errno| {
            freestone_os::report(format_args!(
                "heap_profile=ready: cannot create {}: {errno}; `freestone profile PID` will not find this process",
                path.to_str().unwrap_or("?"),
            ));
        })?;
        number.store(own_number(), Ordering::Relaxed);
        magic.store(MAGIC, Ordering::Release);
        Ok(())
    }

    /// Removes the file, if there is one.
    pub(super) fn remove(&self) {
        if self.words.get().is_some() {
            let _ = c_path(&self.path(".profile")).map(SharedWords::<PAGE_WORDS>::remove);
        }
    }

    /// The path of a file of this process, ended by a zero byte.
    fn path(&self, extension: &str) -> FileName {
        let (mut path, folder) = (FileName::new(), self.folder.load());
        // Where the folder is no text the command could not find the page.
        let folder = folder.as_ref().and_then(|folder| folder.to_str().ok()).unwrap_or("/tmp");
        // Writing into `FixedText` cannot fail.
        let _ = write!(path, "{folder}/freestone-{}{extension}\0", process::id());
        path
    }

    /// Forgets the page in a forked child, where it is not mapped.
    pub(super) fn forget(&self) {
        self.words.forget();
    }
}

/// Whether there is a page at `path`.
fn is_page(path: &CStr) -> bool {
    SharedWords::<PAGE_WORDS>::open_own(path)
        .is_ok_and(|[magic, ..]| matches!(magic.load(Ordering::Relaxed), 0 | MAGIC))
}

fn own_number() -> u64 {
    u64::from(process::id().unsigned_abs())
}

/// `None` if the path is too long.
fn c_path(path: &FileName) -> Option<&CStr> {
    CStr::from_bytes_until_nul(path.as_bytes()).ok()
}
