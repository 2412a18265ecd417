//! Thread heaps: what each thread allocates from without asking anyone.
//!
//! Layer: above `shared`, below `api`. No lock is taken on the way of a small block unless a bin runs empty or full *and* the
//! thread's own spans cannot help.
//!
//! | file | owns |
//! |---|---|
//! | [`heap`] | [`ThreadHeap`]: the bins, and the two hot steps: pop and push |
//! | [`refill`] | an empty bin: where blocks come from, in order |
//! | [`flush`] | a full bin: where blocks go |
//! | [`outbox`] | blocks of other owners, handed over in batches |
//! | [`any`] | blocks of any kind: the slow ways |
//! | [`large`] | blocks that are page runs |
//! | [`life`] | birth and death of thread heaps, and the list of all |
//! | [`current`] | which heap is this thread's |

pub mod any;
pub mod current;
pub mod flush;
pub mod heap;
pub mod large;
pub mod life;
pub mod outbox;
pub mod refill;

pub use heap::ThreadHeap;
pub use life::Threads;
