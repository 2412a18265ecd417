//! Which spans many threads share.
//!
//! Memory that is free in a thread's own spans is of no use to others. Where there are many threads, most of them hold little: they take blocks out of spans that have no
//! owner, and leave such spans to all. A block of a span of its own takes fewer instructions to free, so a thread that allocates many gets one.

use crate::size_class::{block_bytes, class_of};
use crate::thread::heap::own::Own;
use freestone_os::Os;

/// Up to this many threads, each has spans of its own.
pub(crate) const FEW_THREADS: u32 = 16;

/// The first class whose spans are always left to all threads.
const LEFT_FROM: usize = class_of(1024);

/// Less than so many bytes of a class are little.
const LITTLE: i64 = 4096;

/// A thread that has allocated so many blocks of a class in a decay time needs a span of its own.
const MANY: u64 = 1 << 18;

/// Whether a heap takes blocks out of spans that have no owner, in place of adopting such a span: where there are many threads.
pub(crate) fn shares_spans<O: Os>(own: Own<'_, O>) -> bool {
    own.shared().usage.n_thread_heaps() > FEW_THREADS && own.holdings().is_none()
}

/// Whether a span of a class whose bin is empty is left to all threads once a batch was taken: where there are many, one of long blocks, and any of which the thread
/// holds little.
#[inline(always)]
pub(crate) fn leaves_spans<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    shares_spans(own) && (class >= LEFT_FROM || holds_little(own, class))
}

/// Whether the thread holds little of a class whose bin is empty, none of it in a span of its own, and has not allocated many since its last decay tick.
#[cold]
#[inline(never)]
fn holds_little<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    let bytes = own.bins().live_beside(class, 0) * block_bytes(class) as i64;
    own.spans().of(class).n_out() == 0 && bytes < LITTLE && own.bins().allocs_since_tick(class) < MANY
}

/// Whether the thread has allocated so many short blocks of a class since its last decay tick that it needs a span of its own, and has none. If the tick is due, that may have
/// taken longer than a decay time.
pub(crate) fn seems_to_need_own_span<O: Os>(own: Own<'_, O>, class: usize) -> bool {
    class < LEFT_FROM && own.bins().allocs_since_tick(class) >= MANY && own.spans().of(class).n_out() == 0
}

/// Whether the blocks in a bin that may hold `allowed`, which was found full, go back for others of a span of the heap's own: now and then once it needs one, for these may be those
/// that it took while it needed none.
pub(crate) fn renews_blocks<O: Os>(own: Own<'_, O>, class: usize, allowed: i64) -> bool {
    let allocs = own.bins().allocs_since_tick(class);
    shares_spans(own) && allocs >= MANY && allocs % MANY < allowed as u64
}
