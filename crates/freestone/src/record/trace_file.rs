//! The file of a trace: its header, where the next chunk is, and the sequence number that orders threads.
#![allow(unsafe_code)]
//!
//! ```text
//!  off ─▶ wanted ─▶ opening ─▶ open ─▶ over        wanted: the file is made when there is something to write
//!           ▲                   │
//!           └───── fork ────────┘                  the child has a file of its own
//! ```
//!
//! No locks: the state changes by compare-and-swap, and a chunk's place is taken from a counter. While one thread opens the file, another loses what it does
//! meanwhile. So a signal handler never waits, and neither does a forked child.
//!
//! # Safety
//! Parts of the file are mapped and unmapped here; each belongs to one recorder, but for the header, which stays mapped: a process that cannot open the file any more
//! can still write how its recording ended. The name is written by the
//! thread that makes the file, while the state is *opening*, and read by that thread, and by others while it is *open* or has become *over*.

use crate::config::path_value::PathValue;
use crate::record::trace_name::{ATTEMPTS, TraceName};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic;
use freestone_base::sync::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use freestone_os::growing_file::{self, FileId, OpenFile};
use freestone_os::{Errno, Late, OutputFile, Zeroed, clock, process, report};
use freestone_trace::file;

const OFF: u8 = 0;
const WANTED: u8 = 1;
const OPENING: u8 = 2;
const OPEN: u8 = 3;
const OVER: u8 = 4;

/// The file of this process's trace.
pub(crate) struct TraceFile {
    state: AtomicU8,
    /// Its name, from when it is made.
    name: Late<NamePlace>,
    id: [AtomicU64; 2],
    /// The header, mapped, from when the file is made.
    header: AtomicPtr<u8>,
    /// Where the next chunk begins.
    pub(super) end: AtomicU64,
    /// The number that the next event takes which orders threads.
    sequence: AtomicU64,
    n_recorders: AtomicU32,
    n_threads: AtomicU32,
    /// The clock at the start.
    began_us: AtomicU64,
    is_child: AtomicBool,
}

/// The place of the name.
struct NamePlace(UnsafeCell<TraceName>);

// SAFETY: one thread writes it, and others read it after that (module header).
unsafe impl Sync for NamePlace {}
// SAFETY: zero bytes are a text of length 0.
unsafe impl Zeroed for NamePlace {}

/// A chunk that is mapped.
#[derive(Clone, Copy, Debug)]
pub(super) struct MappedChunk {
    pub(super) start: *mut u8,
    pub(super) bytes: usize,
}

impl TraceFile {
    /// Nothing is recorded.
    pub(crate) const fn new() -> Self {
        Self {
            state: AtomicU8::new(OFF),
            name: Late::new(),
            id: [const { AtomicU64::new(0) }; 2],
            header: AtomicPtr::new(ptr::null_mut()),
            end: AtomicU64::new(file::HEADER_BYTES as u64),
            sequence: AtomicU64::new(0),
            n_recorders: AtomicU32::new(0),
            n_threads: AtomicU32::new(0),
            began_us: AtomicU64::new(0),
            is_child: AtomicBool::new(false),
        }
    }

    /// Begins to record. The file is made at once, so that a path that cannot be written is reported now.
    pub(crate) fn begin(&self, path: &PathValue) {
        if path.is_set() {
            self.began_us.store(clock::monotonic_us(), Ordering::Relaxed);
            self.state.store(WANTED, Ordering::Relaxed);
            self.open(path);
        }
    }

    /// Whether calls are recorded.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        matches!(self.state.load(Ordering::Relaxed), WANTED | OPENING | OPEN)
    }

    /// The sequence number.
    #[inline(always)]
    pub(crate) fn sequence(&self) -> u64 {
        // The threads that pass a block to one another order what they see of this counter.
        self.sequence.load(Ordering::Relaxed)
    }

    /// Takes a sequence number.
    #[inline]
    pub(crate) fn take_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for a recorder.
    pub(super) fn number_recorder(&self) -> u32 {
        self.n_recorders.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for a thread.
    pub(crate) fn number_thread(&self) -> u32 {
        self.n_threads.fetch_add(1, Ordering::Relaxed)
    }

    /// Microseconds since the recording began.
    pub(super) fn now_us(&self) -> u64 {
        clock::monotonic_us().saturating_sub(self.began_us.load(Ordering::Relaxed))
    }

    /// Room for a chunk, mapped and zero. `None` if there is none: for now, if another thread opens the file.
    pub(super) fn next_chunk(&self, path: &PathValue, bytes: usize) -> Option<MappedChunk> {
        match self.state.load(Ordering::Relaxed) {
            WANTED => self.open(path),
            OPEN => {}
            _ => return None,
        }
        let (file, at) = self.grow(bytes)?;
        let start = file.map(at, bytes).inspect_err(|&errno| self.stop(errno)).ok()?;
        Some(MappedChunk { start, bytes })
    }

    /// Adds a chunk that is whole. `false` if it is not in the file.
    pub(super) fn append(&self, chunk: &[u8]) -> bool {
        let Some((file, at)) = self.grow(chunk.len()) else { return false };
        file.write(at, chunk).inspect_err(|&errno| self.stop(errno)).is_ok()
    }

    /// The file, and where the next `bytes` of it begin, which are the caller's. `None` if it is not open.
    fn grow(&self, bytes: usize) -> Option<(OpenFile, u64)> {
        if self.state.load(Ordering::Acquire) != OPEN {
            return None;
        }
        let at = self.end.fetch_add(bytes as u64, Ordering::Relaxed);
        let file = self.open_again().inspect_err(|&errno| self.stop(errno)).ok()?;
        Some((file, at))
    }

    /// Writes how the recording ended.
    pub(crate) fn finish(&self) {
        if self.state.load(Ordering::Acquire) == OPEN {
            self.with_header(|header| {
                header.put(file::END_AT, file::end::EXITED);
                header.put(file::PEAK_RSS_AT, process::peak_resident_bytes().unwrap_or(0));
                header.put(file::END_US_AT, self.now_us());
                header.put(file::LEN_AT, self.end.load(Ordering::Relaxed));
            });
        }
    }

    /// In a forked child: what follows goes into a file of its own, which is made when there is something to write.
    pub(crate) fn forked(&self) {
        if self.is_on() {
            let header = self.header.swap(ptr::null_mut(), Ordering::Relaxed);
            if !header.is_null() {
                // SAFETY: it was mapped with this length, and the child's one thread writes no header now.
                unsafe { growing_file::unmap(header, file::HEADER_BYTES) };
            }
            self.end.store(file::HEADER_BYTES as u64, Ordering::Relaxed);
            self.sequence.store(0, Ordering::Relaxed);
            self.n_recorders.store(0, Ordering::Relaxed);
            self.n_threads.store(0, Ordering::Relaxed);
            self.began_us.store(clock::monotonic_us(), Ordering::Relaxed);
            self.is_child.store(true, Ordering::Relaxed);
            self.state.store(WANTED, Ordering::Relaxed);
        }
    }

    #[cold]
    fn open(&self, path: &PathValue) {
        if self.state.compare_exchange(WANTED, OPENING, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        match self.create(path) {
            Ok(()) => self.state.store(OPEN, Ordering::Release),
            Err(errno) => {
                self.state.store(OVER, Ordering::Relaxed);
                let path = path.load();
                let name = path.as_ref().and_then(|path| path.to_str().ok()).unwrap_or("?");
                report(format_args!(
                    "cannot record to {name}: {errno}; the program goes on without; give another path"
                ));
            }
        }
    }

    fn create(&self, path: &PathValue) -> Result<(), Errno> {
        let first = u32::from(self.is_child.load(Ordering::Relaxed));
        for attempt in first..ATTEMPTS {
            let name = self.set_name(path, attempt)?;
            let id = match growing_file::create(name.as_c()) {
                Ok(id) => id,
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(errno),
            };
            for (stored, number) in self.id.iter().zip(id.to_numbers()) {
                stored.store(number, Ordering::Relaxed);
            }
            return self.write_header().inspect_err(|_| OutputFile::remove(name.as_c()));
        }
        Err(Errno::EXIST)
    }

    /// Writes the name that attempt number `attempt` tries. For the thread that makes the file.
    fn set_name(&self, path: &PathValue, attempt: u32) -> Result<&TraceName, Errno> {
        let place = self.name.get_mapped().ok_or(Errno::NOMEM)?;
        // SAFETY: the state is "opening", and this thread made it so: no other uses the name.
        let name = unsafe { &mut *place.0.get() };
        let is_set = path.load().and_then(|path| name.set(path.to_bytes(), attempt));
        is_set.map(|()| &*name).ok_or(Errno::NAME_TOO_LONG)
    }

    /// The file's name. For the thread that makes it, and for others once it is made.
    fn name(&self) -> Option<&TraceName> {
        // SAFETY: it was written before the state became "open", and no thread writes it again but in a forked child, before that state's next time.
        Some(unsafe { &*self.name.get()?.0.get() })
    }

    fn write_header(&self) -> Result<(), Errno> {
        let mut buffer = [0; file::COMMAND_BYTES];
        let header = file::Header {
            pid: process::id() as u32,
            began_ns: clock::since_1970_ns(),
            end: 0,
            peak_rss: 0,
            end_us: 0,
            len: 0,
            command: process::command_line(&mut buffer),
        };
        let start = self.open_again()?.map(0, file::HEADER_BYTES)?;
        // SAFETY: the header is mapped, zero, and this function's alone until it is stored below.
        header.write(unsafe { &mut *start.cast::<[u8; file::HEADER_BYTES]>() });
        self.header.store(start, Ordering::Relaxed);
        Ok(())
    }

    /// Opens the file, for one part.
    fn open_again(&self) -> Result<OpenFile, Errno> {
        let id = FileId::of_numbers([0, 1].map(|at: usize| self.id.get(at).map_or(0, |id| id.load(Ordering::Relaxed))));
        let name = self.name().ok_or(Errno::INVAL)?;
        growing_file::open_again(name.as_c(), id)
    }

    /// Ends the recording for good, because the file cannot grow.
    #[cold]
    fn stop(&self, errno: Errno) {
        if self.state.swap(OVER, Ordering::Relaxed) != OPEN {
            return;
        }
        self.with_header(|header| header.put(file::END_AT, file::end::CUT_OFF));
        let name = self.name().map_or("?", TraceName::as_text);
        report(format_args!("cannot record more to {name}: {errno}; the program goes on, and the trace ends here"));
    }

    fn with_header(&self, change: impl FnOnce(&MappedHeader)) {
        let start = self.header.load(Ordering::Relaxed);
        if !start.is_null() {
            change(&MappedHeader(start));
        }
    }
}

/// The file's header, mapped.
struct MappedHeader(*mut u8);

impl MappedHeader {
    /// Several threads may end the recording at once.
    fn put(&self, at: usize, number: u64) {
        let place = self.0.wrapping_add(at).cast::<u64>();
        // SAFETY: `at` is one of the offsets of `freestone_trace::file`, multiples of 8, so the number lies inside the header, which is mapped, and is
        // accessed in no other way.
        unsafe { atomic::AtomicU64::from_ptr(place) }.store(number.to_le(), Ordering::Relaxed);
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests;
