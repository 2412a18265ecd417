//! Why a TLSF heap refused a call: conversion to the code and numbers that C programs get, and back.

use crate::error::FreestoneError;
use core::fmt;
use freestone_tlsf::Error;

/// Writes the message of an error; `None` if its code is not that of a TLSF heap.
pub fn describe(error: FreestoneError, out: &mut dyn fmt::Write) -> Option<fmt::Result> {
    Some(write!(out, "{}", from_c(error)?))
}

/// The refusal as C programs read it.
pub(super) fn to_c(error: Error) -> FreestoneError {
    let of = |code, address, block, value, limit| FreestoneError { code, address, block, value, limit };
    match error {
        Error::RegionMisaligned { address, bytes } => of(1, address, 0, bytes, 0),
        Error::RegionTooSmall { bytes, least } => of(2, 0, 0, bytes, least),
        Error::RegionTooLarge { bytes, most } => of(3, 0, 0, bytes, most),
        Error::RegionOverlaps { address, other } => of(4, address, other, 0, 0),
        Error::TooManyRegions { most } => of(5, 0, 0, 0, most),
        Error::NoSuchRegion { address } => of(6, address, 0, 0, 0),
        Error::RegionInUse { block, bytes } => of(7, 0, block, bytes, 0),
        Error::ZeroSize => of(8, 0, 0, 0, 0),
        Error::BadAlignment { align } => of(9, 0, 0, align, 0),
        Error::TooLarge { bytes, most } => of(10, 0, 0, bytes, most),
        Error::Exhausted { bytes, align } => of(11, 0, 0, bytes, align),
        Error::Foreign { address } => of(12, address, 0, 0, 0),
        Error::Interior { address, block, bytes } => of(13, address, block, bytes, 0),
        Error::DoubleFree { address, free_block, bytes } => of(14, address, free_block, bytes, 0),
        Error::Overrun { block, bytes } => of(15, 0, block, bytes, 0),
        Error::Damaged { block } => of(16, 0, block, 0, 0),
        Error::RegionTooLow { address, least } => of(17, address, 0, 0, least),
    }
}

/// The refusal that [`to_c`] made `error` of; `None` for every other code.
fn from_c(error: FreestoneError) -> Option<Error> {
    let FreestoneError { code, address, block, value: bytes, limit } = error;
    Some(match code {
        1 => Error::RegionMisaligned { address, bytes },
        2 => Error::RegionTooSmall { bytes, least: limit },
        3 => Error::RegionTooLarge { bytes, most: limit },
        4 => Error::RegionOverlaps { address, other: block },
        5 => Error::TooManyRegions { most: limit },
        6 => Error::NoSuchRegion { address },
        7 => Error::RegionInUse { block, bytes },
        8 => Error::ZeroSize,
        9 => Error::BadAlignment { align: bytes },
        10 => Error::TooLarge { bytes, most: limit },
        11 => Error::Exhausted { bytes, align: limit },
        12 => Error::Foreign { address },
        13 => Error::Interior { address, block, bytes },
        14 => Error::DoubleFree { address, free_block: block, bytes },
        15 => Error::Overrun { block, bytes },
        16 => Error::Damaged { block },
        17 => Error::RegionTooLow { address, least: limit },
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
