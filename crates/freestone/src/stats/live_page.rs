//! The page of statistics that the option `live` keeps in a file: its format, how it is written and how it is read.
//!
//! ```text
//!  word  0  magic                      1  version of the format       2  process       3  latest: number of the last whole state
//!        4  milliseconds between two states, or more                  5 … 7  zero
//!        8  states with an even number, HALF words                    8 + HALF  those with an odd number
//!
//!  a state, from its first word
//!        0  milliseconds of the monotonic clock     1  heaps alive     2  rows of heaps that follow     3  zero
//!        4  the process: STATS words                …  each size class, then large blocks: CLASS words  …  each heap: HEAP words
//! ```
//!
//! A state is written to the half that the last one is not in; then `latest` names it. So a process that is killed at any moment leaves a whole
//! state, and a reader never waits: it copies the half that `latest` names, and if `latest` has changed meanwhile, once more.
//!
//! Words are numbers of this machine's byte order. A change of the layout is a new version.
//!
//! Threads: one thread at a time writes; any process reads.

use super::Stats;
use super::details::Details;
use super::rows::{ClassStats, HeapKind, HeapStats};
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// Marks the file. As text: `freeston`.
const MAGIC: u64 = u64::from_le_bytes(*b"freeston");

/// Version of the format.
const VERSION: u64 = 2;

const MAGIC_AT: usize = 0;
const VERSION_AT: usize = 1;
const PROCESS_AT: usize = 2;
const LATEST_AT: usize = 3;
const INTERVAL_AT: usize = 4;
const HEADER: usize = 8;

/// Words of a state before its rows.
const STATE_HEADER: usize = 4;
const STATS: usize = 20;
const CLASS: usize = 6;
const HEAP: usize = 12;

/// Rows of size classes, and one for large blocks.
pub const CLASS_ROWS: usize = 73;
/// Most rows of heaps.
pub const HEAP_ROWS: usize = 96;

const HALF: usize = STATE_HEADER + STATS + CLASS_ROWS * CLASS + HEAP_ROWS * HEAP;

/// Words of the page.
pub const PAGE_WORDS: usize = HEADER + 2 * HALF;

/// The words.
pub(crate) type Words = [AtomicU64; PAGE_WORDS];

/// Makes words of zeros a page of the process with the number `process` without a state.
pub(crate) fn begin(words: &Words, process: i32, interval_ms: u32) {
    words[PROCESS_AT].store(u64::try_from(process).unwrap_or(0), Ordering::Relaxed);
    words[INTERVAL_AT].store(u64::from(interval_ms), Ordering::Relaxed);
    words[VERSION_AT].store(VERSION, Ordering::Relaxed);
    words[MAGIC_AT].store(MAGIC, Ordering::Release);
}

/// Writes the next state. One thread at a time.
pub(crate) fn write(words: &Words, now_ms: u64, details: &Details<'_>) {
    let number = words[LATEST_AT].load(Ordering::Relaxed) + 1;
    // A reader that sees a word of this state sees the number of the last one at least, and so notices that its half is overwritten.
    fence(Ordering::Release);
    let n_rows = details.heaps.len().min(HEAP_ROWS);
    let mut at = half_of(number);
    let mut put = |numbers: &[u64]| at = store(words, at, numbers);
    put(&[now_ms, details.heaps.len() as u64, n_rows as u64, 0]);
    put(&stats_to_words(&details.stats));
    details.classes.iter().take(CLASS_ROWS).for_each(|row| put(&class_to_words(row)));
    details.heaps.iter().take(n_rows).for_each(|row| put(&heap_to_words(row)));
    words[LATEST_AT].store(number, Ordering::Release);
}

/// Stores numbers from the word `at` on; returns the number of the word behind them. Compiled once for rows of every length.
#[inline(never)]
fn store(words: &Words, at: usize, numbers: &[u64]) -> usize {
    for (word, number) in words.iter().skip(at).zip(numbers) {
        word.store(*number, Ordering::Relaxed);
    }
    at + numbers.len()
}

/// The first word of the state with this number.
fn half_of(number: u64) -> usize {
    HEADER + (number % 2) as usize * HALF
}

/// Why a page has no figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is no page of statistics.
    NoPage,
    /// Its format has another version, which this is.
    OtherVersion(u64),
    /// Its process has not written it yet.
    NoState,
    /// Its process has written it again and again while it was read.
    Busy,
}

/// A state of the page, as it was written.
#[derive(Clone, Debug)]
pub struct LiveState {
    /// The process, by its own number.
    pub process: u32,
    /// The state's number, from 1.
    pub number: u64,
    /// When it was written, in milliseconds of the kernel's coarse monotonic clock.
    pub at_ms: u64,
    /// Milliseconds between two states, or more.
    pub interval_ms: u64,
    /// The process's figures.
    pub stats: Stats,
    /// The size classes, then large blocks.
    pub classes: [ClassStats; CLASS_ROWS],
    /// The first `n_heap_rows` are filled.
    pub heaps: [HeapStats; HEAP_ROWS],
    /// How many heaps have a row.
    pub n_heap_rows: usize,
    /// How many heaps there are.
    pub n_heaps: u64,
}

impl LiveState {
    /// The heaps that have a row.
    #[must_use]
    pub fn heaps(&self) -> &[HeapStats] {
        self.heaps.get(..self.n_heap_rows).unwrap_or(&self.heaps)
    }
}

/// A state is copied at most so often before its process is called busy.
const TRIES: u32 = 100;

/// The process that a page is of.
///
/// # Errors
/// It is no page of this format.
pub fn process_of(words: &Words) -> Result<i32, Unreadable> {
    if words[MAGIC_AT].load(Ordering::Acquire) != MAGIC {
        return Err(Unreadable::NoPage);
    }
    match words[VERSION_AT].load(Ordering::Relaxed) {
        VERSION => Ok(i32::try_from(words[PROCESS_AT].load(Ordering::Relaxed)).unwrap_or(0)),
        other => Err(Unreadable::OtherVersion(other)),
    }
}

/// The last whole state.
///
/// # Errors
/// There is none.
pub fn read(words: &Words) -> Result<LiveState, Unreadable> {
    let process = u32::try_from(process_of(words)?).unwrap_or(0);
    for _ in 0..TRIES {
        let number = words[LATEST_AT].load(Ordering::Acquire);
        if number == 0 {
            return Err(Unreadable::NoState);
        }
        let state = copy(words, process, number);
        fence(Ordering::Acquire);
        if words[LATEST_AT].load(Ordering::Relaxed) == number {
            return Ok(state);
        }
    }
    Err(Unreadable::Busy)
}

/// Copies the half that the state with this number is in, whatever it has.
fn copy(words: &Words, process: u32, number: u64) -> LiveState {
    let mut at = half_of(number);
    let mut next = || {
        let word = words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
        at += 1;
        word
    };
    let [at_ms, n_heaps, n_heap_rows, _] = core::array::from_fn(|_| next());
    let stats = stats_of_words(core::array::from_fn(|_| next()));
    let classes = core::array::from_fn(|_| class_of_words(core::array::from_fn(|_| next())));
    let heaps = core::array::from_fn(|_| heap_of_words(core::array::from_fn(|_| next())));
    let interval_ms = words[INTERVAL_AT].load(Ordering::Relaxed);
    let n_heap_rows = usize::try_from(n_heap_rows).unwrap_or(HEAP_ROWS).min(HEAP_ROWS);
    LiveState { process, number, at_ms, interval_ms, stats, classes, heaps, n_heap_rows, n_heaps }
}

/// Defines how a row is written to words and read from them. One list of its fields, in the order of their words, serves both: so neither
/// direction can miss a field or have another order.
macro_rules! row {
    ($row:ident in $words:ident: $to_words:ident, $of_words:ident, $($field:ident),+) => {
        fn $to_words(row: &$row) -> [u64; $words] {
            let mut words = [0; $words];
            let mut at = 0;
            $(at = row.$field.put(&mut words, at);)+
            debug_assert!(at == $words);
            words
        }

        fn $of_words(words: [u64; $words]) -> $row {
            let mut words = words.into_iter();
            // In the order in which they are written here.
            $row { $($field: Field::take(&mut words)),+ }
        }
    };
}

row! { Stats in STATS: stats_to_words, stats_of_words,
    live, cached, fragmented, dirty, metadata, committed, uncarved, peak_committed, peak_live, purged, dirty_by_age, fresh, n_allocations, n_frees,
    n_remote_frees, n_handovers, n_threads
}

row! { ClassStats in CLASS: class_to_words, class_of_words,
    block_bytes, live, cached, n_allocations, n_frees, n_remote_frees
}

row! { HeapStats in HEAP: heap_to_words, heap_of_words,
    number, kind, thread_id, spans, cached, live, large, limit, n_allocations, n_frees, n_remote_frees, n_handovers
}

/// A field of a row as words.
trait Field: Sized {
    /// Writes the field from the word `at` on; returns the number of the word behind it.
    fn put(&self, words: &mut [u64], at: usize) -> usize;

    /// Reads the field from the next words.
    fn take(words: &mut impl Iterator<Item = u64>) -> Self;
}

impl Field for u64 {
    fn put(&self, words: &mut [u64], at: usize) -> usize {
        if let Some(word) = words.get_mut(at) {
            *word = *self;
        }
        at + 1
    }

    fn take(words: &mut impl Iterator<Item = u64>) -> Self {
        words.next().unwrap_or(0)
    }
}

impl Field for u32 {
    fn put(&self, words: &mut [u64], at: usize) -> usize {
        u64::from(*self).put(words, at)
    }

    fn take(words: &mut impl Iterator<Item = u64>) -> Self {
        u64::take(words) as u32
    }
}

impl<const N: usize> Field for [u64; N] {
    fn put(&self, words: &mut [u64], at: usize) -> usize {
        self.iter().fold(at, |at, number| number.put(words, at))
    }

    fn take(words: &mut impl Iterator<Item = u64>) -> Self {
        core::array::from_fn(|_| u64::take(words))
    }
}

impl Field for HeapKind {
    fn put(&self, words: &mut [u64], at: usize) -> usize {
        (*self as u64).put(words, at)
    }

    fn take(words: &mut impl Iterator<Item = u64>) -> Self {
        match u64::take(words) {
            0 => Self::Thread,
            1 => Self::Shared,
            _ => Self::Explicit,
        }
    }
}

#[cfg(test)]
mod tests;
