//! Why a pool refused a call: conversion to the code and numbers that C programs get, and back.
//!
//! Safe code: [`FreestoneError::store`] writes through the caller's pointer.

use crate::error::FreestoneError;
use core::fmt;
use freestone_pool::Error;

/// The Rust pool's errors, and those that only C programs can get.
#[derive(Clone, Copy, Debug)]
pub enum Refusal {
    /// The Rust pool's own reason.
    Of(Error),
    /// The process's allocator has no memory for the pool.
    NoMemory {
        /// How many.
        bytes: usize,
    },
    /// Magazines of the pool still exist.
    MagazinesExist {
        /// How many.
        n_magazines: usize,
    },
    /// A magazine was requested from a pool that is not shared.
    NotShared,
    /// A shared pool was requested where the processor has no atomic operations of 64 bits.
    NoAtomics,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Of(error) => error.fmt(out),
            Self::NoMemory { bytes } => write!(out, "there is no memory for a pool of {bytes} bytes"),
            Self::MagazinesExist { n_magazines } => {
                write!(out, "the pool still has {n_magazines} magazines: destroy them first")
            }
            Self::NotShared => {
                write!(out, "the pool is not shared: create it with .shared = 1 to have magazines")
            }
            Self::NoAtomics => {
                write!(out, "this processor has no atomic operations of 64 bits, which a shared pool needs")
            }
        }
    }
}

impl Refusal {
    /// The refusal as C programs read it.
    pub fn to_c(self) -> FreestoneError {
        let of = |code, address, block, value, limit| FreestoneError { code, address, block, value, limit };
        match self {
            Self::Of(Error::ZeroBlockSize) => of(101, 0, 0, 0, 0),
            Self::Of(Error::ZeroCount) => of(102, 0, 0, 0, 0),
            Self::Of(Error::BadAlignment { align }) => of(103, 0, 0, align, 0),
            Self::Of(Error::TooLarge { block_bytes, count }) => of(104, 0, 0, block_bytes, count),
            Self::Of(Error::RegionMisaligned { address, align }) => of(105, address, 0, 0, align),
            Self::Of(Error::RegionTooSmall { bytes, least }) => of(106, 0, 0, bytes, least),
            Self::Of(Error::Exhausted { count, block_bytes }) => of(107, 0, 0, block_bytes, count),
            Self::Of(Error::Foreign { address }) => of(108, address, 0, 0, 0),
            Self::Of(Error::Interior { address, block, bytes }) => of(109, address, block, bytes, 0),
            Self::Of(Error::DoubleFree { block, bytes }) => of(110, block, block, bytes, 0),
            Self::Of(Error::NeverAllocated { block, bytes }) => of(111, block, block, bytes, 0),
            Self::Of(Error::InUse { block, n_blocks }) => of(112, 0, block, n_blocks, 0),
            Self::Of(Error::Damaged { block }) => of(113, 0, block, 0, 0),
            Self::NoMemory { bytes } => of(114, 0, 0, bytes, 0),
            Self::MagazinesExist { n_magazines } => of(115, 0, 0, n_magazines, 0),
            Self::NotShared => of(116, 0, 0, 0, 0),
            Self::NoAtomics => of(117, 0, 0, 0, 0),
        }
    }

    /// The refusal that [`Refusal::to_c`] made `error` of; `None` for every other code.
    fn from_c(error: FreestoneError) -> Option<Self> {
        let FreestoneError { code, address, block, value, limit } = error;
        Some(Self::Of(match code {
            101 => Error::ZeroBlockSize,
            102 => Error::ZeroCount,
            103 => Error::BadAlignment { align: value },
            104 => Error::TooLarge { block_bytes: value, count: limit },
            105 => Error::RegionMisaligned { address, align: limit },
            106 => Error::RegionTooSmall { bytes: value, least: limit },
            107 => Error::Exhausted { count: limit, block_bytes: value },
            108 => Error::Foreign { address },
            109 => Error::Interior { address, block, bytes: value },
            110 => Error::DoubleFree { block, bytes: value },
            111 => Error::NeverAllocated { block, bytes: value },
            112 => Error::InUse { block, n_blocks: value },
            113 => Error::Damaged { block },
            114 => return Some(Self::NoMemory { bytes: value }),
            115 => return Some(Self::MagazinesExist { n_magazines: value }),
            116 => return Some(Self::NotShared),
            117 => return Some(Self::NoAtomics),
            _ => return None,
        }))
    }
}

/// Writes the message of an error; `None` if its code is not that of a pool.
pub fn describe(error: FreestoneError, out: &mut dyn fmt::Write) -> Option<fmt::Result> {
    Some(write!(out, "{}", Refusal::from_c(error)?))
}

#[cfg(test)]
mod tests;
