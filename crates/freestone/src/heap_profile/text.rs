//! The heap profile as text: the format `heap_v2`, which `pprof` reads.
//!
//! ```text
//!  heap profile: 2: 160 [9: 720] @ heap_v2/524288          samples that are live, [since the start], the interval
//!  1: 80 [4: 320] @ 0x55d3c0de11a4 0x55d3c0de1262          a stack: blocks: bytes [since the start] @ return addresses, the innermost first
//!  …
//!  # 3 samples were lost                                   if the profile was full, or the heap of sampled blocks busy
//!
//!  MAPPED_LIBRARIES:
//!  55d3c0de1000-55d3c0de2000 r-xp …                        /proc/self/maps
//! ```
//!
//! The reader takes blocks and bytes as samples, and divides both by the chance that a block of their mean size is sampled. Blocks of several sizes in
//! one stack would be estimated wrongly by that. So the two numbers are made such that the reader's result is the estimate: its bytes are right to
//! one byte, its blocks to about one sample.
//!
//! Layer: allocates nothing, takes no lock.

use crate::heap_profile::exponential::one_less_exp;
use crate::heap_profile::recorder::HeapProfile;
use crate::heap_profile::stack_table::StackCounts;
use crate::heap_profile::tally::Weight;
use core::ffi::CStr;
use core::fmt::{self, Write};
use freestone_base::sync::{AtomicUsize, Ordering};
use freestone_base::text::Pieces;
use freestone_os::{CodeAddress, Errno, OutputFile, read_pieces, with_rows};

/// Which blocks a dump is of.
///
/// ```
/// use freestone::profile::{self, Snapshot};
///
/// # assert!(profile::start());
/// for snapshot in [Snapshot::Live, Snapshot::Peak] {
///     let mut n_bytes = 0;
///     profile::write(snapshot, &mut |piece| Ok(n_bytes += piece.len())).expect("counting does not fail");
///     assert!(n_bytes > 0);
/// }
/// # profile::stop();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Snapshot {
    /// Those that are live now.
    #[default]
    Live,
    /// Those that were live when the most bytes were.
    Peak,
}

/// Bytes that are passed on at once. The kernel lends the room for them: the stack may be that of a thread which has little.
const PIECE_BYTES: usize = 2048;

/// As many where the kernel has no memory to lend.
const PIECE_BYTES_LEAST: usize = 128;

/// Passes on the profile, piece by piece.
///
/// # Errors
/// The first that `sink` returns, or the kernel's from reading what is mapped.
pub(crate) fn write(
    profile: &HeapProfile,
    of: Snapshot,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let written = with_rows(PIECE_BYTES, |room| write_through(room, profile, of, sink));
    written.unwrap_or_else(|| write_through(&mut [0; PIECE_BYTES_LEAST], profile, of, sink))
}

/// As [`write`], in pieces as long as `room`.
#[inline(never)]
fn write_through(
    room: &mut [u8],
    profile: &HeapProfile,
    of: Snapshot,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut result = Ok(());
    let mut keep = |piece: &[u8]| {
        result = sink(piece);
        result.map_err(|_| fmt::Error)
    };
    let mut pieces = Pieces::new(room, &mut keep);
    let is_written = stacks(profile, of, &mut pieces).and_then(|()| pieces.flush()).is_ok();
    if !is_written {
        return result;
    }
    read_pieces(c"/proc/self/maps", room, sink)
}

/// Writes the profile to a file, which is created or emptied.
///
/// # Errors
/// The kernel's error.
pub(crate) fn write_to(profile: &HeapProfile, path: &CStr, of: Snapshot) -> Result<(), Errno> {
    write_into(profile, &OutputFile::create(path)?, of)
}

/// Writes the profile into a file.
///
/// # Errors
/// The kernel's error.
pub(crate) fn write_into(profile: &HeapProfile, file: &OutputFile, of: Snapshot) -> Result<(), Errno> {
    write(profile, of, &mut |piece| file.write(piece))
}

/// Writes the profile to a new file that only its user may open.
///
/// # Errors
/// The kernel's error: that something is at `path` included. No file of this call is left then.
pub(crate) fn write_private(profile: &HeapProfile, path: &CStr, of: Snapshot) -> Result<(), Errno> {
    let file = OutputFile::create_private(path)?;
    write_into(profile, &file, of).inspect_err(|_| OutputFile::remove(path))
}

fn stacks(profile: &HeapProfile, of: Snapshot, text: &mut Pieces<'_>) -> fmt::Result {
    let interval = profile.last_interval();
    let mut sum = [Shown::default(); 2];
    profile.for_each(|_, counts| {
        for (sum, part) in sum.iter_mut().zip(columns(counts, of, interval)) {
            sum.blocks += part.blocks;
            sum.bytes += part.bytes;
        }
        Ok::<_, fmt::Error>(())
    })?;
    let [shown, since_start] = sum;
    writeln!(text, "heap profile: {shown} [{since_start}] @ heap_v2/{interval}")?;
    profile.for_each(|addresses, counts| {
        let [shown, since_start] = columns(counts, of, interval);
        if since_start.blocks == 0 {
            return Ok(());
        }
        write!(text, "{shown} [{since_start}] @")?;
        frames(text, addresses)?;
        writeln!(text)
    })?;
    if profile.n_dropped() > 0 {
        writeln!(text, "# {} samples were lost", profile.n_dropped())?;
    }
    writeln!(text, "\nMAPPED_LIBRARIES:")
}

/// Writes a stack's return addresses, but those of this library that come first.
fn frames(text: &mut Pieces<'_>, addresses: &[AtomicUsize]) -> fmt::Result {
    let code = |address: &AtomicUsize| CodeAddress(address.load(Ordering::Relaxed));
    let n_own = addresses.iter().take_while(|address| code(address).is_of_this_library()).count();
    let shown = addresses.get(n_own..).filter(|rest| !rest.is_empty()).unwrap_or(addresses);
    // A stack's addresses are in the calls; a reader expects those behind, and goes back by one.
    shown.iter().try_for_each(|address| write!(text, " {:#x}", code(address).0.wrapping_add(1)))
}

/// Blocks and bytes as they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shown {
    blocks: u64,
    bytes: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.blocks, self.bytes)
    }
}

fn columns(counts: StackCounts, of: Snapshot, interval: u64) -> [Shown; 2] {
    let shown = match of {
        Snapshot::Live => counts.live,
        Snapshot::Peak => counts.at_peak,
    };
    [as_samples(shown, interval), as_samples(counts.since_start, interval)]
}

/// The samples that a reader makes an estimate of. A function of its own: each column would have it.
#[inline(never)]
fn as_samples(estimate: Weight, interval: u64) -> Shown {
    let (blocks, bytes) = estimate.estimate();
    if blocks <= 0.0 || bytes <= 0.0 || interval == 0 {
        return Shown::default();
    }
    let rate = interval as f64;
    let samples = blocks * one_less_exp(bytes / blocks / rate);
    // A sample stands for `interval` bytes at least.
    let most = if bytes > rate { (bytes / rate) as u64 } else { 1 };
    let n = ((samples + 0.5) as u64).clamp(1, most);
    Shown { blocks: n, bytes: sampled_bytes(n, bytes, rate) }
}

/// The bytes of `n` samples that a reader makes `estimate` of, which was rounded. Its estimate grows with them, so they are found by bisection.
fn sampled_bytes(n: u64, estimate: f64, rate: f64) -> u64 {
    let of = |bytes: u64| bytes as f64 / one_less_exp(bytes as f64 / (n as f64 * rate));
    let (mut low, mut high) = (1, (estimate as u64).max(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if of(middle) < estimate {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let is_nearer_below = low > 1 && estimate - of(low - 1) < of(low) - estimate;
    low - u64::from(is_nearer_below)
}

#[cfg(test)]
mod tests;
