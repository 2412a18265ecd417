//! Walking the blocks of the regions in address order: iteration, leaks, and the diagnosis of a bad address.
//!
//! Cost: linear in the number of blocks. None of this is on a path that has a bound to keep.
//!
//! # Safety
//! A walk follows a size only after the header's seal was compared and only inside the region, so a heap that was written over ends
//! the walk, and nothing worse.
#![allow(unsafe_code)]

use crate::block::{Block, FREE, HEADER_BYTES, Header, LEAST_BLOCK_BYTES, Sealer};
use crate::error::Error;
use crate::policy::Policy;
use crate::region::Region;
use crate::tlsf::Tlsf;
use crate::top::Top;

/// A block as [`Tlsf::blocks`] shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Where its payload starts.
    pub address: usize,
    /// What its owner may write (if it is free: what the owner of all of it could).
    pub usable_bytes: usize,
    /// What it takes in its region, header included.
    pub block_bytes: usize,
    /// Whether it is in use.
    pub used: bool,
}

/// The headers of one region, in address order; ends with the first that is broken, as an error.
pub(crate) struct Walk {
    next: Option<Block>,
    sentinel: Block,
    sealer: Sealer,
    top: Top,
}

impl Iterator for Walk {
    type Item = Result<(Block, Header), Block>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.next.take()?;
        // SAFETY: `next` holds headers inside the region only: the first, and those that checked sizes led to.
        let header = unsafe { block.header(self.sealer) };
        if !header.is_whole() {
            return Some(Err(block));
        }
        if block == self.sentinel {
            return if header.size() == 0 { None } else { Some(Err(block)) };
        }
        let header = match self.top.is_at(block) {
            true if header != Header::TOP => return Some(Err(block)),
            true => Header::new(self.top.bytes(), FREE),
            false => header,
        };
        let size = header.size();
        if size < LEAST_BLOCK_BYTES || size > self.sentinel.address() - block.address() {
            return Some(Err(block));
        }
        // SAFETY: the size ends at the sentinel or before.
        self.next = Some(unsafe { block.after(size) });
        Some(Ok((block, header)))
    }
}

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Tlsf<'_, P, FIRST, SECOND, REGIONS> {
    /// Every block, used and free, region by region in address order. Stops early in a region whose headers were overwritten
    /// ([`Tlsf::check`] says where).
    pub fn blocks(&self) -> impl Iterator<Item = BlockInfo> {
        self.regions.iter().flat_map(|region| self.blocks_of(*region))
    }

    /// The blocks still in use: at the end of a program, its leaks.
    pub fn leaks(&self) -> impl Iterator<Item = BlockInfo> {
        self.blocks().filter(|block| block.used)
    }

    pub(crate) fn walk(&self, region: Region) -> Walk {
        Walk { next: Some(region.first()), sentinel: region.sentinel(), sealer: self.sealer, top: self.top }
    }

    pub(crate) fn blocks_of(&self, region: Region) -> impl Iterator<Item = BlockInfo> {
        self.walk(region).map_while(Result::ok).map(|(block, header)| self.info(block, header))
    }

    pub(crate) fn info(&self, block: Block, header: Header) -> BlockInfo {
        let used = !header.is_free();
        BlockInfo {
            address: block.payload_address(),
            usable_bytes: if used { self.usable_bytes(block, header) } else { header.size() - HEADER_BYTES },
            block_bytes: header.size(),
            used,
        }
    }

    /// Says what is wrong with an address that is not a block in use with whole neighbours. (In this order both are in place.)
    #[cold]
    #[inline(never)]
    pub(crate) fn diagnose(address: usize, heap: &Self) -> Error {
        let Some(region) = heap.regions.iter().find(|region| region.contains(address)) else {
            return Error::Foreign { address };
        };
        let mut before = None;
        for step in heap.walk(*region) {
            let (block, header) = match step {
                Err(broken) => return blame(before, broken),
                Ok(found) => found,
            };
            let info = heap.info(block, header);
            if address < block.address() + header.size() {
                return heap.diagnose_in(address, *region, block, info);
            }
            before = Some(info);
        }
        Error::Foreign { address }
    }

    /// As [`Tlsf::diagnose`], for an address inside `block`, whose header is whole.
    fn diagnose_in(&self, address: usize, region: Region, block: Block, info: BlockInfo) -> Error {
        let BlockInfo { address: start, usable_bytes: bytes, .. } = info;
        if !info.used {
            return Error::DoubleFree { address, free_block: start, bytes };
        }
        if address == start {
            let behind = self.walk(region).skip_while(|step| matches!(step, Ok((at, _)) if *at != block));
            return match behind.last() {
                Some(Err(_)) | None => Error::Overrun { block: start, bytes },
                Some(Ok(_)) if P::FOOTER => Error::Overrun { block: start, bytes },
                Some(Ok(_)) => Error::Damaged { block: start },
            };
        }
        if address < start {
            return Error::Foreign { address };
        }
        Error::Interior { address, block: start, bytes }
    }
}

/// Whom to blame for a header that was overwritten: the used block in front of it, or nobody known.
pub(crate) fn blame(before: Option<BlockInfo>, broken: Block) -> Error {
    match before {
        Some(info) if info.used => Error::Overrun { block: info.address, bytes: info.usable_bytes },
        _ => Error::Damaged { block: broken.payload_address() },
    }
}
