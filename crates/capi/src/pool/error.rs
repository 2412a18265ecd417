//! Why a pool refused, for C: a code, what it speaks of, and the sentence.
#![allow(unsafe_code)]
//!
//! # Safety
//! Structures are whole, and buffers as long as their callers say.

use core::ffi::{c_char, c_int};
use core::fmt::{self, Write as _};
use freestone_base::text::FixedText;
use freestone_pool::Error;

/// `FREESTONE_POOL_OK`.
pub(super) const OK: c_int = 0;

/// `freestone_pool_error_t` of `freestone.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FreestonePoolError {
    code: c_int,
    address: usize,
    block: usize,
    value: usize,
    limit: usize,
}

/// What the Rust pool refuses, and what only C can run into.
#[derive(Clone, Copy)]
pub(super) enum Refusal {
    Of(Error),
    NoMemory { bytes: usize },
    MagazineOut { n_magazines: usize },
    NotShared,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Of(error) => error.fmt(out),
            Self::NoMemory { bytes } => write!(out, "there is no memory for a pool of {bytes} bytes"),
            Self::MagazineOut { n_magazines } => {
                write!(out, "{n_magazines} magazines of the pool are still out: delete them first")
            }
            Self::NotShared => write!(out, "the pool is one thread's: make it with .shared = 1 to have magazines"),
        }
    }
}

impl Refusal {
    /// Fills `*error`, if there is one, and returns the code.
    ///
    /// # Safety
    /// - `error` is null or can be written.
    pub(super) unsafe fn report(self, error: *mut FreestonePoolError) -> c_int {
        let flat = self.flat();
        if !error.is_null() {
            // SAFETY: the caller's promise.
            unsafe { error.write(flat) };
        }
        flat.code
    }

    /// Whether memory, rather than sense, was lacking: what errno calls ENOMEM.
    pub(super) fn is_want_of_memory(self) -> bool {
        matches!(self, Self::NoMemory { .. } | Self::Of(Error::Exhausted { .. } | Error::TooLarge { .. }))
    }

    fn flat(self) -> FreestonePoolError {
        let flat = |code, address, block, value, limit| FreestonePoolError { code, address, block, value, limit };
        match self {
            Self::Of(Error::ZeroBlockSize) => flat(1, 0, 0, 0, 0),
            Self::Of(Error::ZeroCount) => flat(2, 0, 0, 0, 0),
            Self::Of(Error::BadAlignment { align }) => flat(3, 0, 0, align, 0),
            Self::Of(Error::TooLarge { block_bytes, count }) => flat(4, 0, 0, block_bytes, count),
            Self::Of(Error::RegionMisaligned { address, align }) => flat(5, address, 0, 0, align),
            Self::Of(Error::RegionTooSmall { bytes, least }) => flat(6, 0, 0, bytes, least),
            Self::Of(Error::Exhausted { count, block_bytes }) => flat(7, 0, 0, block_bytes, count),
            Self::Of(Error::Foreign { address }) => flat(8, address, 0, 0, 0),
            Self::Of(Error::Interior { address, block, bytes }) => flat(9, address, block, bytes, 0),
            Self::Of(Error::DoubleFree { block, bytes }) => flat(10, block, block, bytes, 0),
            Self::Of(Error::NeverAllocated { block, bytes }) => flat(11, block, block, bytes, 0),
            Self::Of(Error::InUse { block, n_blocks }) => flat(12, 0, block, n_blocks, 0),
            Self::Of(Error::Damaged { block }) => flat(13, 0, block, 0, 0),
            Self::NoMemory { bytes } => flat(14, 0, 0, bytes, 0),
            Self::MagazineOut { n_magazines } => flat(15, 0, 0, n_magazines, 0),
            Self::NotShared => flat(16, 0, 0, 0, 0),
        }
    }

    /// The refusal that [`Refusal::flat`] made `error` of; none for success and for codes that are none.
    fn of(error: FreestonePoolError) -> Option<Self> {
        let FreestonePoolError { code, address, block, value, limit } = error;
        Some(Self::Of(match code {
            1 => Error::ZeroBlockSize,
            2 => Error::ZeroCount,
            3 => Error::BadAlignment { align: value },
            4 => Error::TooLarge { block_bytes: value, count: limit },
            5 => Error::RegionMisaligned { address, align: limit },
            6 => Error::RegionTooSmall { bytes: value, least: limit },
            7 => Error::Exhausted { count: limit, block_bytes: value },
            8 => Error::Foreign { address },
            9 => Error::Interior { address, block, bytes: value },
            10 => Error::DoubleFree { block, bytes: value },
            11 => Error::NeverAllocated { block, bytes: value },
            12 => Error::InUse { block, n_blocks: value },
            13 => Error::Damaged { block },
            14 => return Some(Self::NoMemory { bytes: value }),
            15 => return Some(Self::MagazineOut { n_magazines: value }),
            16 => return Some(Self::NotShared),
            _ => return None,
        }))
    }
}

/// Longer than any sentence.
const MOST_TEXT: usize = 256;

/// Writes the sentence of an error into `buffer`, cut to `size - 1` bytes and ended by a zero. Its whole length.
///
/// # Safety
/// - `error` points to an error; `buffer` to `size` bytes, or `size` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_pool_error_text(
    error: *const FreestonePoolError,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    let mut text = FixedText::<MOST_TEXT>::new();
    // Writing into a fixed text does not fail.
    // SAFETY: the caller's promise.
    let _written = match Refusal::of(unsafe { *error }) {
        Some(refusal) => write!(text, "{refusal}"),
        None => write!(text, "no error"),
    };
    let bytes = text.as_bytes();
    if let Some(room) = size.checked_sub(1) {
        let n_kept = bytes.len().min(room);
        // SAFETY: the buffer has room for that and the zero.
        unsafe {
            buffer.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), n_kept);
            buffer.add(n_kept).write(0);
        }
    }
    bytes.len()
}
