//! Mappings: how long a large block has to be to get a mapping of its own.
//!
//! Linux allows a process 65,530 mappings, those of its files and stacks included. Memory that was moved, or that is to have huge pages, is no part of
//! the mapping beside it, and the ends of such mappings stay when the block is freed. They go when another block that is long enough is moved there.
//! So their number settles at about the length of the arena divided by that of the blocks that get one.

use freestone_base::units::Pages;

/// A block is moved by the kernel, rather than copied, if the arena is at most this many times its length.
const MOVED_SHARE: u32 = 8192;

/// A block may have huge pages if the arena is at most this many times its length. Blocks that have them lie side by side more often.
const HUGE_SHARE: u32 = 16384;

/// Whether the memory of a block of `pages` in an arena of `arena` pages may be moved.
pub(in crate::page) fn may_move(pages: Pages, arena: Pages) -> bool {
    pages.0 >= arena.0 / MOVED_SHARE
}

/// Whether a block of `pages` in an arena of `arena` pages may have huge pages.
pub(in crate::page) fn may_be_huge(pages: Pages, arena: Pages) -> bool {
    pages.0 >= arena.0 / HUGE_SHARE
}

#[cfg(test)]
mod tests;
