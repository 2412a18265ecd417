//! OS pages that are carved into free blocks: where few of them are wanted, and the others are for whoever comes next.

use crate::span::blocks::{Taken, next_carved, take, words_of};
use crate::span::{OwnedSpan, Uncarved};
use core::ops::Range;
use freestone_base::inbox::LinkKey;

/// Takes up to `n` free blocks. If there are none, carves as [`carve`](super::carve) does first, and leaves those of the blocks free that are not taken.
#[inline(never)]
pub(crate) fn take_few(span: &OwnedSpan<'_>, n: u32, os_page_bytes: usize, key: LinkKey, uncarved: &Uncarved) -> Taken {
    let carved = if span.n_free.get() == 0 { carve_free(span, n, os_page_bytes, uncarved) } else { 0..0 };
    let chain = take(span, n, key);
    let less_free = i64::from(chain.len) - carved.len() as i64;
    Taken { chain, less_free, is_zero: !carved.is_empty() && span.fresh_is_zero.get() }
}

/// Carves the next OS page with a block in it, or as many as [`carve`](super::carve) does for `n` blocks. The blocks are free then. Returns their numbers; none if every page has been carved.
#[inline(never)]
pub(crate) fn carve_free(span: &OwnedSpan<'_>, n: u32, os_page_bytes: usize, uncarved: &Uncarved) -> Range<usize> {
    let blocks = next_carved(span, n, 0, os_page_bytes, uncarved);
    if !blocks.is_empty() {
        span.n_free.set(span.n_free.get() + blocks.len() as u32);
        span.first_word.set(span.first_word.get().min((blocks.start / 64) as u16));
        words_of(span.bitmap(), blocks.clone(), |word, bits| {
            word.set(word.get() | bits);
            true
        });
    }
    blocks
}
