//! Growth: how much address space and memory to take ahead of need.
//!
//! The arena grows in steps that lengthen with it, so that the number of system calls stays logarithmic in its size. A block that grows
//! by little (`realloc`) is placed with address space behind it, and gets the memory of its new part at once where it is likely to be written. One
//! that grows steeply takes memory that is dirty.

use freestone_base::units::{Bytes, Pages};

/// The arena grows by at least this much: 1 MiB, so that a small process stays small.
const ARENA_STEP_LEAST: u32 = 16;

/// The arena grows by at most this much beyond the request: 64 MiB.
const ARENA_STEP_MOST: u32 = 1024;

/// The arena grows by this part of what it has.
const ARENA_SHARE: u32 = 8;

/// A block that grows gets this many times its size of address space, itself included.
const ROOM_FACTOR: u32 = 4;

/// It takes dirty memory rather than clean pages where it finds this many times its size of that.
const DIRTY_ROOM_FACTOR: u32 = 2;

/// A block that grows by at most this part gets the memory for it at once: a system call instead of a page fault for each OS page. What
/// grows in small steps is filled before it grows again; one that doubles its room may not be.
const POPULATE_SHARE: u32 = 4;

/// A block that grows by at least this part, and stays shorter than [`COPIED_MOST`], is copied to dirty memory rather than given clean pages where it is, and gets no
/// room: programs that grow many buffers at once grow them by a half, or double them.
const STEEP_SHARE: usize = 8;

/// See [`STEEP_SHARE`]: 4 MiB. From there on it may have huge pages. Shorter blocks are not moved to memory that is dirty: the kernel would get that back, and the next
/// block would have to fault it in again.
pub(crate) const COPIED_MOST: Pages = Pages(64);

/// A block that grows may end with a whole huge page, if that adds at most the first part to it while it is short, and the second when it is
/// longer than [`SHORT_PAGES`].
const SLACK_SHARE: (u32, u32) = (8, 64);

/// See [`SLACK_SHARE`]: 16 MiB.
const SHORT_PAGES: Pages = Pages(256);

/// By how many pages an arena of `arena` pages grows when `wanted` are needed.
pub(in crate::page) fn arena_step(arena: Pages, wanted: Pages) -> Pages {
    Pages((arena.0 / ARENA_SHARE).clamp(ARENA_STEP_LEAST, ARENA_STEP_MOST)).max(wanted)
}

/// Pages in a row to look for when a block of `pages` is going to grow; `None` beyond the largest number.
pub(in crate::page) fn with_growth_room(pages: Pages) -> Option<Pages> {
    pages.0.checked_mul(ROOM_FACTOR).map(Pages)
}

/// Free pages behind a block of `pages` that are its room.
pub(in crate::page) fn room_behind(pages: Pages) -> Pages {
    Pages(pages.0.saturating_mul(ROOM_FACTOR - 1))
}

/// Dirty pages in a row that are enough for a block of `pages` that is going to grow.
pub(in crate::page) fn with_dirty_growth_room(pages: Pages) -> Pages {
    Pages(pages.0.saturating_mul(DIRTY_ROOM_FACTOR))
}

/// Whether a block that is to have `pages` may have `whole`, up to the end of its last huge page.
pub(in crate::page) fn may_end_whole(pages: Pages, whole: Pages) -> bool {
    let share = if pages < SHORT_PAGES { SLACK_SHARE.0 } else { SLACK_SHARE.1 };
    whole - pages <= Pages(pages.0 / share)
}

/// Whether a block of `pages` that grew by `more` gets the memory for that at once.
pub(in crate::page) fn populates(pages: Pages, more: Pages) -> bool {
    more <= Pages(pages.0 / POPULATE_SHARE)
}

/// Whether a block that holds `held` and is to hold `wanted` is copied to dirty memory, if there is any.
pub(in crate::page) fn prefers_dirty(held: Bytes, wanted: Bytes) -> bool {
    wanted < COPIED_MOST.to_bytes() && wanted.0.saturating_sub(held.0) >= held.0 / STEEP_SHARE
}

#[cfg(test)]
mod tests;
