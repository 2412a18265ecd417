//! Watched heaps: every operation takes the slow way, where it is checked.
//!
//! ```text
//!  malloc ─▶ bin empty ─────────▶ slow way ─▶ watched? ─no──▶ as ever
//!  free   ─▶ not this heap's ───▶                 │ yes
//!  drop   ─▶ no room in the bin ▶                 ▼
//!                       allocate    a random block of the magazine, whose place one takes that has waited; still filled? ─▶ canary and trailer behind what was asked for
//!                       exact_free  start of a block, out, right size, canary whole ─▶ filled ─▶ quarantine
//!                       release     if too many wait: ─▶ magazine; what it has no room for: still filled? ─▶ span, or owner
//! ```
//!
//! A watched heap's hot fields never let a hot path succeed: bins empty, no room, lookup empty, large-run cache closed. So the hot paths do not
//! know of it, and cost the others nothing. Its blocks come from the spans' bitmaps and go there, one by one, by way of magazines. A span remembers that its blocks
//! have trailers (`Span::is_watched`), so that whoever frees one of them, watched or not, checks it. `docs/decisions/0023-watched-heaps.md` has the
//! reasons.
//!
//! | file | owns |
//! |---|---|
//! | [`seat`] | what a heap has if it is watched |
//! | [`quarantine`] | freed blocks that wait |
//! | [`magazine`] | free blocks that are handed out next |
//! | [`live_count`] | when a burst has ended |
//! | [`request`] | what a program asks for, and what it says of a block that it frees |
//! | [`allocate`] | handing out |
//! | [`exact_free`] | freeing |
//! | [`examine`] | what is wrong with a block |
//! | [`empty_block`] | blocks of no bytes |
//! | [`large_marks`] | what is known of a large block |
//! | [`large_block`] | large blocks: handing out, resizing in place |
//! | [`release`] | from the quarantine to magazine and span, when too many blocks wait |
//! | [`homecoming`] | blocks that come home from other threads |
//! | [`resize`] | resizing |
//!
//! Invariants
//! - A free block of a watched span, and one in a quarantine or a magazine, is filled as its trailer says, but for OS pages that were purged.
//! - A block in a quarantine or a magazine is out of its span, and in no bin, buffer or inbox. One of an explicit heap is in that heap's quarantine only.

pub(crate) mod allocate;
pub(crate) mod empty_block;
pub(crate) mod exact_free;
pub(crate) mod examine;
pub(crate) mod homecoming;
pub(crate) mod large_block;
pub(crate) mod large_marks;
pub(crate) mod live_count;
pub(crate) mod magazine;
pub(crate) mod quarantine;
pub(crate) mod release;
pub(crate) mod request;
pub(crate) mod resize;
pub(crate) mod seat;

#[cfg(test)]
mod tests;
