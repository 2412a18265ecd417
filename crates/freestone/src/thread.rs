//! Thread heaps: each thread allocates from its own, without synchronising with others.
//!
//! Layer: above `shared`, below `api`. A small block is allocated or freed without a lock unless a bin runs empty or full *and* the
//! thread's own spans cannot serve it.
//!
//! ```text
//!  resizing ─▶ any_block ─▶ refill ─▶ upkeep ─▶ drain ─▶ flush ─▶ route ─▶ returns      what is done: functions of an `Own`
//!                                                                 │
//!  heap, heap::own ◀────────────────────────────────────────┘
//!    │
//!  bins · spans · remote_frees · burst · span_purge · accounts · ticks      what a heap is composed of
//! ```
//!
//! | file | owns |
//! |---|---|
//! | [`bins`] | free blocks at hand, one bin per size class, and the two hot steps: pop and push |
//! | [`lookup`] | deciding whether a block is the heap's own |
//! | [`free_block`] | free blocks as values |
//! | [`in_transit`] | blocks on their way to the thread that owns their spans |
//! | [`spans`] | the spans that a heap owns |
//! | [`spans_ahead`] | runs for the next ones, taken ahead |
//! | [`remote_frees`] | blocks of other owners, handed over in batches |
//! | [`span_owner`] | who owns the span of a block |
//! | [`send`] | a block on its way to whoever owns its span now |
//! | [`mailbox`] | where others hand over a heap's blocks |
//! | [`idle_note`] | how long blocks have waited in an inbox |
//! | [`idle`] | what waits in the inbox of an idle thread, without the memory that can go back |
//! | [`orphaned`] | in a forked child, the heaps of threads that do not exist there |
//! | [`burst`] | when a burst ends |
//! | [`capacity`] | how many blocks a bin may hold |
//! | [`sharing`] | which spans many threads share |
//! | [`span_purge`] | when OS pages inside spans go back |
//! | [`accounts`] | what was counted and not yet published |
//! | [`ticks`] | when a heap's periodic work was last done |
//! | [`heap`] | [`ThreadHeap`](heap::ThreadHeap), composed of these |
//! | [`heap::own`] | the proof [`Own`](heap::own::Own) that a heap is alive and the calling thread's |
//! | [`returns`] | blocks going back to spans of this heap |
//! | [`route`] | where a block of another owner goes |
//! | [`flush`] | a full bin: where its blocks go |
//! | [`drain`] | the inbox |
//! | [`double_free`] | whether a block that is freed is free already |
//! | [`upkeep`] | the decay tick, and emptying everything |
//! | [`refill`] | an empty bin: where blocks come from, in order |
//! | [`large`] | blocks that are page runs |
//! | [`new_block`] | a block that was just allocated |
//! | [`countdown`] | how far the next sample is |
//! | [`sampling`] | which allocations are guarded |
//! | [`profile_countdowns`] | how far a heap is from the next samples of the heap profile |
//! | [`profiling`] | which allocations the heap profile samples |
//! | [`locate`] | what an address is |
//! | [`extent`] | which block holds an address, for the checks of memory functions |
//! | [`growth`] | the size that a resized block should get |
//! | [`any_block`] | blocks of any kind: the slow paths |
//! | [`resizing`] | blocks of any kind, resized |
//! | [`holdings`] | what an explicit heap has beside its thread heap |
//! | [`gated`] | a thread heap behind a gate |
//! | [`explicit`] | explicit heaps |
//! | [`generations`] | the numbers that distinguish owners |
//! | [`records`] | the storage of heaps |
//! | [`keys`] | the keys that encode links in free blocks |
//! | [`spare`] | heaps without a thread, kept whole for the next threads |
//! | [`emptying`] | what a heap that ends does last |
//! | [`life`] | creation and end of heaps, and the list of all |
//! | [`watched`] | heaps that take the slow way in every operation, where it is checked |
//! | [`recorded`] | threads whose calls are recorded |
//! | [`current`] | which heap is this thread's |

pub(crate) mod accounts;
pub(crate) mod any_block;
pub(crate) mod bins;
pub(crate) mod burst;
pub(crate) mod capacity;
pub(crate) mod countdown;
pub(crate) mod current;
pub(crate) mod double_free;
pub(crate) mod drain;
pub(crate) mod emptying;
pub(crate) mod explicit;
pub(crate) mod extent;
pub(crate) mod flush;
pub(crate) mod free_block;
pub(crate) mod gated;
pub(crate) mod generations;
pub(crate) mod growth;
pub(crate) mod heap;
pub(crate) mod holdings;
pub(crate) mod idle;
pub(crate) mod idle_note;
pub(crate) mod in_transit;
pub(crate) mod keys;
pub(crate) mod large;
pub(crate) mod life;
pub(crate) mod locate;
pub(crate) mod lookup;
pub(crate) mod mailbox;
pub(crate) mod new_block;
pub(crate) mod orphaned;
pub(crate) mod profile_countdowns;
pub(crate) mod profiling;
pub(crate) mod recorded;
pub(crate) mod records;
pub(crate) mod refill;
pub(crate) mod remote_frees;
pub(crate) mod resizing;
pub(crate) mod returns;
pub(crate) mod route;
pub(crate) mod sampling;
pub(crate) mod send;
pub(crate) mod sharing;
pub(crate) mod span_owner;
pub(crate) mod span_purge;
pub(crate) mod spans;
pub(crate) mod spans_ahead;
pub(crate) mod spare;
pub(crate) mod ticks;
pub(crate) mod upkeep;
pub(crate) mod watched;
