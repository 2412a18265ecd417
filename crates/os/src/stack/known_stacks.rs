//! Stacks that were found, so that the next one that is the same is compared and not found again.
//!
//! ```text
//!  set     4 entries, of the code addresses and stack pointers of one hash
//!  entry   version                  odd while it is written
//!          code, stack, frame       the registers that the stack was found from; the frame pointer only if a rule used it
//!          counts
//!          places, words            of return addresses, from the innermost on; a place is the number of a word, counted from the stack pointer
//!          other places and words   of frame pointers that a rule used, and of what ended the stack
//! ```
//!
//! Each step of a stack is a function of a code address, of registers, and of words on the stack. So where the registers and all these words are what they were,
//! the stack is, too: comparing is exact. Kept are stacks of which every rule is kept (`rule_cache`: no object of it can be unloaded), that end where the
//! rules say so, or are as long as there is room for; and whose words are all in the part of the thread's own stack that is known to be readable.
//!
//! Cost: some ten instructions a frame, in place of sixty to seventy.
//!
//! Threads: any. An entry has one writer at a time; who finds it being written, or written meanwhile, takes it for another stack. So a signal handler
//! that interrupts a writer waits for nobody. The entries are mapped when the first is kept.

use super::hash::hash_of;
use super::registers::{Registers, plain};
use super::rule::{Place, RuleWord};
use crate::late::Late;
use crate::readable::KnownWords;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// Sets, a power of two.
const SETS: usize = 64;

/// Entries of a set: functions that are called from one place have one stack pointer.
const WAYS: usize = 4;

/// One in so many stacks that are not known is kept: keeping takes two thirds of the time again that finding takes, and where a program recurses, hardly one comes
/// again.
const ONE_IN: usize = 4;

/// Callers of the innermost function that there is room for, and other words.
const CALLERS: usize = 64;
const OTHERS: usize = 12;

const VERSION: usize = 0;
const CODE: usize = 1;
const STACK: usize = 2;
const FRAME: usize = 3;
const COUNTS: usize = 4;
const HASH: usize = 5;
const CALLERS_AT: usize = 8;
const OTHERS_AT: usize = CALLERS_AT + 2 * CALLERS;
const ENTRY_WORDS: usize = OTHERS_AT + 2 * OTHERS;

type Words = [AtomicU64; ENTRY_WORDS];

/// See the module header.
pub(super) struct KnownStacks {
    entries: Late<[Words; SETS * WAYS]>,
    /// Stacks that were not known, ever.
    n_missed: AtomicUsize,
}

/// The process's.
pub(super) static KNOWN: KnownStacks = KnownStacks::new();

/// What is known of an entry beside its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    callers: usize,
    others: usize,
    /// Frames that there was room for.
    room: usize,
    /// Whether the first frame pointer was used.
    uses_frame: bool,
}

impl Counts {
    fn of(word: u64) -> Self {
        let part = |shift: u32| usize::from((word >> shift) as u16);
        Self { callers: part(0), others: part(16), room: part(32), uses_frame: word >> 48 != 0 }
    }

    fn word(self) -> u64 {
        self.callers as u64 | (self.others as u64) << 16 | (self.room as u64) << 32 | u64::from(self.uses_frame) << 48
    }
}

impl KnownStacks {
    const fn new() -> Self {
        Self { entries: Late::new(), n_missed: AtomicUsize::new(0) }
    }

    /// The number of the first entry of a set.
    #[inline(always)]
    fn first(at: &Registers) -> usize {
        let mixed = (at.stack as u64 ^ at.code as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        mixed as usize % SETS * WAYS
    }

    /// How many frames a stack has that is known, `room` at most, and the hash of their addresses; `None` if it is not known. Writes the addresses, unless there
    /// are no places. `words` are those from the stack pointer on.
    #[inline(never)]
    pub(super) fn get(
        &self,
        at: &Registers,
        words: KnownWords,
        room: usize,
        places: &mut [usize],
    ) -> Option<(usize, u64)> {
        let first = Self::first(at);
        let set = self.entries.get()?.get(first..first + WAYS)?;
        set.iter().find_map(|entry| compare(entry, at, words, room, places))
    }

    /// An entry for a stack that is not known; `None` of most of them, without memory, or if the entry is being written.
    pub(super) fn begin(&self, at: &Registers) -> Option<NewStack<'_>> {
        let n = self.n_missed.fetch_add(1, Ordering::Relaxed);
        if n % ONE_IN != 0 {
            return None;
        }
        let way = n / ONE_IN % WAYS;
        let words = self.entries.get_mapped()?.get(Self::first(at) + way)?;
        let version = words[VERSION].load(Ordering::Relaxed);
        let odd = version | 1;
        let is_free = version != odd
            && words[VERSION].compare_exchange(version, odd, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        fence(Ordering::Release);
        is_free.then_some(NewStack {
            words,
            version: odd,
            at: *at,
            frame: Frame::First,
            n_callers: 0,
            n_others: 0,
            uses_frame: false,
            is_exact: true,
        })
    }
}

#[inline(always)]
fn compare(
    entry: &Words,
    at: &Registers,
    words: KnownWords,
    room: usize,
    places: &mut [usize],
) -> Option<(usize, u64)> {
    let word = |index: usize| entry[index].load(Ordering::Relaxed);
    let version = entry[VERSION].load(Ordering::Acquire);
    if word(STACK) != at.stack as u64 || word(CODE) != at.code as u64 || version % 2 != 0 {
        return None;
    }
    let counts = Counts::of(word(COUNTS));
    if counts.room != room || (counts.uses_frame && word(FRAME) != at.frame as u64) {
        return None;
    }
    let is_same = |pair: &[AtomicU64]| {
        let found = words.get(pair[0].load(Ordering::Relaxed) as usize);
        found.is_some_and(|found| plain(found) as u64 == pair[1].load(Ordering::Relaxed))
    };
    let pairs = |from: usize, n: usize| Some(entry.get(from..from + 2 * n)?.chunks_exact(2));
    let callers = pairs(CALLERS_AT, counts.callers)?;
    if !callers.clone().all(is_same) || !pairs(OTHERS_AT, counts.others)?.all(is_same) {
        return None;
    }
    if let Some((first, rest)) = places.split_first_mut() {
        *first = at.code;
        for (place, pair) in rest.iter_mut().zip(callers) {
            *place = (pair[1].load(Ordering::Relaxed) as usize).wrapping_sub(1);
        }
    }
    let hash = word(HASH);
    fence(Ordering::Acquire);
    (word(VERSION) == version).then_some((1 + counts.callers, hash))
}

/// Where the frame pointer of the function was found that the stack has come to.
#[derive(Clone, Copy)]
enum Frame {
    /// It is the first one.
    First,
    /// It was saved in this place.
    Saved(usize),
    /// It is lost.
    Lost,
}

/// A stack that is being found, and kept if it is exact.
pub(super) struct NewStack<'a> {
    words: &'a Words,
    version: u64,
    at: Registers,
    frame: Frame,
    n_callers: usize,
    n_others: usize,
    uses_frame: bool,
    is_exact: bool,
}

impl NewStack<'_> {
    /// Notes what a rule read to find `caller` of the function with the registers `at`.
    pub(super) fn note(&mut self, rule: RuleWord, at: &Registers, caller: &Registers) {
        if rule.is_by_frame() {
            match self.frame {
                Frame::First => self.uses_frame = true,
                Frame::Saved(place) => self.add_other(place, at.frame),
                Frame::Lost => {}
            }
        }
        let (_, return_address, frame_pointer) = rule.places(at);
        match return_address {
            Place::At(place) => self.add_caller(place, caller.code),
            Place::Same | Place::Lost => self.is_exact = false,
        }
        match frame_pointer {
            Place::At(place) => self.frame = Frame::Saved(place),
            Place::Same => {}
            Place::Lost => self.frame = Frame::Lost,
        }
    }

    /// Notes that the stack depends on something else.
    pub(super) fn give_up(&mut self) {
        self.is_exact = false;
    }

    fn add_caller(&mut self, place: usize, word: usize) {
        let number = self.number(place);
        if self.n_callers < CALLERS {
            self.write(CALLERS_AT + 2 * self.n_callers, number);
            self.write(CALLERS_AT + 2 * self.n_callers + 1, plain(word));
        }
        self.n_callers += 1;
    }

    fn add_other(&mut self, place: usize, word: usize) {
        let number = self.number(place);
        self.add_other_word(number, plain(word));
    }

    fn add_other_word(&mut self, number: usize, word: usize) {
        if self.n_others < OTHERS {
            self.write(OTHERS_AT + 2 * self.n_others, number);
            self.write(OTHERS_AT + 2 * self.n_others + 1, word);
        }
        self.n_others += 1;
    }

    /// The number of the word at `place`, counted from the stack pointer. A word that is not above that makes the stack one that is not kept.
    fn number(&mut self, place: usize) -> usize {
        let distance = place.wrapping_sub(self.at.stack);
        self.is_exact &= place >= self.at.stack && distance % size_of::<usize>() == 0;
        distance / size_of::<usize>()
    }

    fn write(&self, index: usize, word: usize) {
        self.words[index].store(word as u64, Ordering::Relaxed);
    }

    /// Ends a stack of these addresses, of as many as there is `room` for.
    pub(super) fn finish(mut self, addresses: &[usize], room: usize) {
        let frames = addresses.len();
        let fits = self.n_callers <= CALLERS;
        if let Some(last) = self.n_callers.checked_sub(1).filter(|&last| fits && last + 1 == frames) {
            // What the last return address says is not part of the stack.
            let [number, word] =
                [0, 1].map(|at| self.words[CALLERS_AT + 2 * last + at].load(Ordering::Relaxed) as usize);
            self.add_other_word(number, word);
            self.n_callers = last;
        }
        let counts = Counts { callers: self.n_callers, others: self.n_others, room, uses_frame: self.uses_frame };
        let is_kept = self.is_exact && fits && self.n_others <= OTHERS && self.n_callers + 1 == frames;
        self.write(CODE, self.at.code);
        // No stack begins at 0.
        self.write(STACK, if is_kept { self.at.stack } else { 0 });
        self.write(FRAME, self.at.frame);
        self.words[HASH].store(hash_of(addresses), Ordering::Relaxed);
        self.words[COUNTS].store(counts.word(), Ordering::Relaxed);
        self.words[VERSION].store(self.version.wrapping_add(1), Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
