//! Walking the blocks of the regions in address order: iteration, leaks, and the diagnosis of a bad address.
//!
//! Cost: linear in the number of blocks. None of this is on a path with a bound.
//!
//! # Safety
//! A walk follows a size only if the header's seal is intact, and only inside the region. In a heap that was overwritten it ends early.
#![allow(unsafe_code)]

use crate::block::Block;
use crate::block_size::{HEADER_BYTES, LEAST_BLOCK_BYTES};
use crate::error::Error;
use crate::header::{FREE, Header, Sealer};
use crate::policy::Policy;
use crate::region::Region;
use crate::tlsf::Tlsf;
use crate::top::Top;

/// A block, as [`Tlsf::blocks`] reports it.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// # let mut heap = freestone_tlsf::Tlsf::new();
/// # heap.add_region(&mut memory.0)?;
/// use freestone_tlsf::BlockInfo;
///
/// let block = heap.allocate(40, 16)?;
/// let expected = BlockInfo { address: block.addr().get(), usable_bytes: 40, block_bytes: 48, used: true };
/// assert_eq!(heap.blocks().next(), Some(expected));
/// # Ok::<(), freestone_tlsf::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// The address of its payload.
    pub address: usize,
    /// The number of bytes that its owner may write; for a free block, the number that an owner of the whole block could.
    pub usable_bytes: usize,
    /// The number of bytes it takes in its region, header included.
    pub block_bytes: usize,
    /// Whether it is in use.
    pub used: bool,
}

/// The headers of one region, in address order. The first header that is broken ends the walk, as an error.
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
        let header = block.header(self.sealer);
        if !header.is_intact() {
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
        // SAFETY: the header is intact, and its size leads to the sentinel or to a header in front of it.
        self.next = Some(unsafe { block.after(size) });
        Some(Ok((block, header)))
    }
}

impl<P: Policy, const FIRST: usize, const SECOND: usize, const REGIONS: usize> Tlsf<'_, P, FIRST, SECOND, REGIONS> {
    /// Every block, used and free, region by region in address order. In a region with an overwritten header it stops early
    /// ([`Tlsf::check`] says where).
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let mut heap = freestone_tlsf::Tlsf::new();
    /// # heap.add_region(&mut memory.0)?;
    /// let _first = heap.allocate(40, 16)?;
    /// let all: Vec<_> = heap.blocks().collect();
    /// assert_eq!((all[0].usable_bytes, all[0].used), (40, true));
    /// assert!(!all[1].used, "the rest of the region");
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    pub fn blocks(&self) -> impl Iterator<Item = BlockInfo> {
        self.regions.iter().flat_map(|region| self.blocks_of(*region))
    }

    /// The blocks that are still in use: at the end of a program, its leaks.
    ///
    /// ```
    /// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
    /// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
    /// # let mut heap = freestone_tlsf::Tlsf::new();
    /// # heap.add_region(&mut memory.0)?;
    /// let block = heap.allocate(100, 16)?;
    /// let leaked: Vec<_> = heap.leaks().map(|leak| leak.address).collect();
    /// assert_eq!(leaked, [block.addr().get()]);
    /// # Ok::<(), freestone_tlsf::Error>(())
    /// ```
    pub fn leaks(&self) -> impl Iterator<Item = BlockInfo> {
        self.blocks().filter(|block| block.used)
    }

    /// The headers of `region`, a region of this heap.
    pub(crate) fn walk(&self, region: Region) -> Walk {
        Walk { next: Some(region.first()), sentinel: region.sentinel(), sealer: self.sealer, top: self.top }
    }

    /// The blocks of `region`, a region of this heap, up to the first broken header.
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

    /// What is wrong with `address`, which is not that of a block in use with intact neighbours. (With the parameters in this order
    /// both are in their registers already.)
    #[cold]
    #[inline(never)]
    pub(crate) fn diagnose(address: usize, heap: &Self) -> Error {
        let Some(region) = heap.regions.iter().find(|region| region.contains(address)) else {
            return Error::Foreign { address };
        };
        let mut before = None;
        for step in heap.walk(*region) {
            let (block, header) = match step {
                Err(broken) => return overrun_into(broken, before),
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

    /// What is wrong with the sentinel of `region`, a region of this heap.
    #[cold]
    pub(crate) fn diagnose_end(&self, region: Region) -> Error {
        overrun_into(region.sentinel(), self.blocks_of(region).last())
    }

    /// As [`Tlsf::diagnose`], of an address inside `block`, whose header is intact.
    fn diagnose_in(&self, address: usize, region: Region, block: Block, info: BlockInfo) -> Error {
        let BlockInfo { address: start, usable_bytes: bytes, .. } = info;
        if !info.used {
            return Error::DoubleFree { address, free_block: start, bytes };
        }
        if address == start {
            let from_block = self.walk(region).skip_while(|step| matches!(step, Ok((at, _)) if *at != block));
            return match from_block.last() {
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

/// The error for the header of `broken`, which was overwritten: an overrun of the used block in front of it, `before`, if there is one.
pub(crate) fn overrun_into(broken: Block, before: Option<BlockInfo>) -> Error {
    match before {
        Some(info) if info.used => Error::Overrun { block: info.address, bytes: info.usable_bytes },
        _ => Error::Damaged { block: broken.payload_address() },
    }
}

#[cfg(test)]
mod tests;
