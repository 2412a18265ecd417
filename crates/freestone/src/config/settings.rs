//! The options' values: set at the start and through the API, read on slow paths.
//!
//! Long because: it has one reader for each option.

use crate::config::path_value::PathValue;
use crate::config::profile::Profile;
use crate::config::report_file::ReportFile;
use crate::config::words::{Background, HeapProfiling, MisusePolicy, Prefault, ProfileSignal, Purge, Thp};
use crate::config::{Mistake, NEVER_MS, OPTIONS, PROFILES, Unit, find, key, parse};
use core::fmt;
use core::str::FromStr;
use freestone_base::sync::{AtomicUsize, Ordering};
use freestone_base::units::{PAGE_BYTES, Pages};

/// How much heap misuse is detected: the levels of the option `harden`. Each detects what the ones before it detect.
///
/// ```
/// use freestone::options::{Harden, Mistake};
///
/// assert_eq!("checks".parse(), Ok(Harden::Checks));
/// assert_eq!("very".parse::<Harden>(), Err(Mistake::NotAWord));
/// assert!(Harden::Default < Harden::Full);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Harden {
    /// What the plain data structures notice by themselves.
    Off,
    /// Links in free blocks are encoded and checked; double and misaligned frees are noticed.
    Default,
    /// Every free is exact, and blocks have canaries.
    Checks,
    /// Everything there is.
    Full,
}

impl Harden {
    /// The level that a word names.
    pub(crate) fn of_word(word: &[u8]) -> Result<Self, Mistake> {
        parse::value(OPTIONS[key::HARDEN].unit, word).map(Self::of_number)
    }

    /// The level with this number: that of its word.
    fn of_number(number: usize) -> Self {
        match number {
            0 => Self::Off,
            1 => Self::Default,
            2 => Self::Checks,
            _ => Self::Full,
        }
    }
}

impl FromStr for Harden {
    type Err = Mistake;

    fn from_str(word: &str) -> Result<Self, Mistake> {
        Self::of_word(word.as_bytes())
    }
}

/// A thread keeps at most this much of one size class: bounds [`key::BIN_MAX`] for large blocks.
const BIN_MAX_BYTES: usize = 1 << 20;

/// Fewest blocks that the byte bound leaves a bin.
const BIN_MAX_LEAST: usize = 32;

/// A bin starts with room for this many bytes of blocks, between these bounds: a program that never frees more of a class than that never
/// flushes.
const BIN_START_BYTES: usize = 64 * 1024;
/// See [`BIN_START_BYTES`].
const BIN_START: core::ops::RangeInclusive<usize> = 8..=512;

/// The dirty bound is what is in use divided by this, or the option's value if that is larger.
const DIRTY_SHARE: u64 = 10;

/// No limit.
const UNLIMITED: usize = usize::MAX;

/// The default values of [`OPTIONS`].
static DEFAULTS: [usize; OPTIONS.len()] = [
    0,
    1000,
    16 << 20,
    Background::Auto as usize,
    Purge::DontNeed as usize,
    Thp::Auto as usize,
    Prefault::Off as usize,
    PAGE_BYTES,
    4096,
    UNLIMITED,
    UNLIMITED,
    MisusePolicy::Abort as usize,
    0,
    0,
    0,
    Harden::Default as usize,
    0,
    0,
    512 << 10,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
];

/// The values of [`OPTIONS`], as numbers: in the option's unit, or the index of the word. The paths are beside them.
pub struct Settings {
    values: [AtomicUsize; OPTIONS.len()],
    report_file: ReportFile,
    live_path: PathValue,
    heap_profile_file: PathValue,
    record_path: PathValue,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(OPTIONS.iter().enumerate().map(|(index, spec)| (spec.key, self.get(index)))).finish()
    }
}

impl Settings {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        let mut values = [const { AtomicUsize::new(0) }; OPTIONS.len()];
        let mut index = 0;
        while index < DEFAULTS.len() {
            values[index] = AtomicUsize::new(DEFAULTS[index]);
            index += 1;
        }
        Self {
            values,
            report_file: ReportFile::new(),
            live_path: PathValue::new(),
            heap_profile_file: PathValue::new(),
            record_path: PathValue::new(),
        }
    }

    /// Milliseconds after which dirty memory is purged; `None`: never.
    #[must_use]
    pub fn decay_ms(&self) -> Option<u32> {
        let ms = self.get(key::DECAY_MS);
        if ms == NEVER_MS { None } else { u32::try_from(ms).ok() }
    }

    /// Whether the options ask for more free memory to be kept than by default.
    #[must_use]
    pub(crate) fn keeps_more(&self) -> bool {
        self.get(key::DIRTY_MAX) > DEFAULTS[key::DIRTY_MAX]
    }

    /// Free bytes that may stay, whatever their age, in a process that has `in_use_bytes` in use.
    #[must_use]
    pub fn dirty_bound_bytes(&self, in_use_bytes: u64) -> u64 {
        (self.get(key::DIRTY_MAX) as u64).max(in_use_bytes / DIRTY_SHARE)
    }

    /// Whether the allocator has a thread of its own.
    #[must_use]
    pub fn background(&self) -> Background {
        match self.get(key::BACKGROUND) {
            _ if self.sandbox() => Background::Off,
            0 => Background::Auto,
            1 => Background::On,
            _ => Background::Off,
        }
    }

    /// How memory is given back.
    #[must_use]
    pub fn purge(&self) -> Purge {
        if self.get(key::PURGE) == 0 { Purge::DontNeed } else { Purge::Free }
    }

    /// What huge pages are requested for.
    #[must_use]
    pub fn thp(&self) -> Thp {
        match self.get(key::THP) {
            0 => Thp::Auto,
            1 => Thp::On,
            _ => Thp::Off,
        }
    }

    /// When and how memory gets its physical pages.
    #[must_use]
    pub fn prefault(&self) -> Prefault {
        match self.get(key::PREFAULT) {
            0 => Prefault::Off,
            1 => Prefault::Touch,
            2 => Prefault::WillNeed,
            _ => Prefault::Populate,
        }
    }

    /// Pages of the next span of a small class.
    #[must_use]
    pub fn span_pages(&self) -> Pages {
        Pages(self.get(key::SPAN_SIZE).div_ceil(PAGE_BYTES) as u32)
    }

    /// Most blocks of `block_bytes` in a bin.
    #[must_use]
    pub fn bin_max(&self, block_bytes: usize) -> u32 {
        let by_bytes = (BIN_MAX_BYTES / block_bytes).max(BIN_MAX_LEAST);
        self.get(key::BIN_MAX).min(by_bytes) as u32
    }

    /// Blocks of `block_bytes` that a new bin has room for.
    #[must_use]
    pub fn bin_start(&self, block_bytes: usize) -> u32 {
        let start = (BIN_START_BYTES / block_bytes).clamp(*BIN_START.start(), *BIN_START.end()) as u32;
        start.min(self.bin_max(block_bytes))
    }

    /// Bytes in use from which on caches are emptied; `None`: no limit.
    #[must_use]
    pub fn limit_bytes(&self) -> Option<usize> {
        let limit = self.get(key::LIMIT);
        (limit != UNLIMITED).then_some(limit)
    }

    /// Makes `bytes` the soft limit unless it is set.
    pub fn set_default_limit(&self, bytes: usize) {
        if let Some(limit) = self.values.get(key::LIMIT) {
            let _ = limit.compare_exchange(UNLIMITED, bytes, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Bytes in use beyond which allocating fails; `None`: no limit.
    #[must_use]
    pub fn limit_hard_bytes(&self) -> Option<usize> {
        let limit = self.get(key::LIMIT_HARD);
        (limit != UNLIMITED).then_some(limit)
    }

    /// What happens on an invalid free.
    #[must_use]
    pub fn misuse(&self) -> MisusePolicy {
        match self.get(key::MISUSE) {
            0 => MisusePolicy::Abort,
            1 => MisusePolicy::Report,
            _ => MisusePolicy::Ignore,
        }
    }

    /// Whether the process runs in a sandbox, where any system call but the few that `docs/sandboxes.md` lists may kill it.
    #[must_use]
    pub fn sandbox(&self) -> bool {
        self.get(key::SANDBOX) != 0
    }

    /// How much heap misuse is detected. The same from the first allocation on.
    #[must_use]
    pub fn harden(&self) -> Harden {
        Harden::of_number(self.get(key::HARDEN))
    }

    /// Of how many small allocations one is guarded; `None`: none is.
    #[inline]
    #[must_use]
    pub fn guard_sample(&self) -> Option<u64> {
        let rate = self.get(key::GUARD_SAMPLE);
        (rate != 0 && !self.sandbox()).then_some(rate as u64)
    }

    /// The file of the report.
    pub(crate) fn report_file(&self) -> &ReportFile {
        &self.report_file
    }

    /// Where calls are recorded, if they are.
    pub(crate) fn record_path(&self) -> &PathValue {
        &self.record_path
    }

    /// The file of heap profiles.
    pub(crate) fn heap_profile_file(&self) -> &PathValue {
        &self.heap_profile_file
    }

    /// Whether a heap profile was asked for at the start; `None`: not.
    #[must_use]
    pub fn heap_profile(&self) -> Option<HeapProfiling> {
        match self.get(key::HEAP_PROFILE) {
            _ if self.sandbox() => None,
            0 => None,
            1 => Some(HeapProfiling::Ready),
            _ => Some(HeapProfiling::On),
        }
    }

    /// The signal that starts profiling or has a profile written; `None`: no signal does.
    #[must_use]
    pub fn heap_profile_signal(&self) -> Option<ProfileSignal> {
        match (self.heap_profile()?, self.get(key::HEAP_PROFILE_SIGNAL)) {
            (_, 0) => None,
            (_, 1) => Some(ProfileSignal::Usr1),
            _ => Some(ProfileSignal::Usr2),
        }
    }

    /// Milliseconds between two profiles; `None`: time has none written.
    #[must_use]
    pub fn heap_profile_ms(&self) -> Option<u32> {
        self.heap_profile()?;
        u32::try_from(self.get(key::HEAP_PROFILE_MS)).ok().filter(|&ms| ms > 0)
    }

    /// The path of the page of statistics, in which `%p` stands for the process's number.
    pub(crate) fn live_path(&self) -> &PathValue {
        &self.live_path
    }

    /// Milliseconds between two lines of the report; `None`: only at start and exit.
    #[must_use]
    pub fn report_ms(&self) -> Option<u32> {
        u32::try_from(self.get(key::REPORT_MS)).ok().filter(|&ms| ms > 0)
    }

    /// Sets the option `index` of [`OPTIONS`] to the value that the text `value` says. A profile sets the options it names, too.
    ///
    /// # Errors
    /// There is no such option, or the value is not of its unit or outside its bounds; nothing has changed then.
    pub fn set(&self, index: usize, value: &[u8]) -> Result<(), Mistake> {
        let number = Self::number(index, value)?;
        self.store(index, number);
        if index == key::PROFILE {
            if let Some(profile) = PROFILES.get(number) {
                self.apply(profile);
            }
        }
        Ok(())
    }

    /// The number that the text `value` says for the option `index` of [`OPTIONS`].
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub(crate) fn number(index: usize, value: &[u8]) -> Result<usize, Mistake> {
        let spec = OPTIONS.get(index).ok_or(Mistake::UnknownKey)?;
        let number = parse::value(spec.unit, value)?;
        let is_number = !matches!(spec.unit, Unit::Words(_) | Unit::Path);
        if is_number && !(spec.bounds.0..=spec.bounds.1).contains(&number) {
            return Err(Mistake::OutOfRange);
        }
        Ok(number)
    }

    /// Stores the value of option `index` as a number, without checking it.
    pub(crate) fn store(&self, index: usize, number: usize) {
        if let Some(value) = self.values.get(index) {
            value.store(number, Ordering::Relaxed);
        }
    }

    /// Sets the options that `profile` names, and those that only other profiles name to their defaults.
    fn apply(&self, profile: &Profile) {
        for (index, _) in PROFILES.iter().flat_map(options_of) {
            self.store(index, DEFAULTS.get(index).copied().unwrap_or(0));
        }
        for (index, value) in options_of(profile) {
            // A test checks that every value is valid.
            let _ = self.set(index, value);
        }
    }

    /// The value of option `index` as a number: in its unit, or the index of its word. A path is 0; a limit that is not set is the largest number.
    #[must_use]
    pub fn get(&self, index: usize) -> usize {
        self.values.get(index).map_or(0, |value| value.load(Ordering::Relaxed))
    }
}

/// The options that a profile sets, and their values.
fn options_of(profile: &Profile) -> impl Iterator<Item = (usize, &[u8])> {
    parse::pairs(profile.options.as_bytes()).filter_map(|(key, value)| Some((find(key)?, value)))
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}
