//! Loom models of the heap's own protocols: how spans, records and wake-ups pass between threads.
//!
//! The heap itself is a thousand times too large for loom. These models state each protocol in a few lines, over the real inbox and loom's own
//! locks (ours has its models), and take every ordering from the heap's source (`stated`). So an ordering that is weakened there fails a
//! model here (`cargo xtask orderings`), and an operation that is no longer there does so, too.
//!
//! | file | models |
//! |---|---|
//! | `hand_over` | blocks that are sent to a span's owner while the span changes hands |
//! | `publication` | what one thread initialises and others find |
//! | `background` | the start, the sleep and the end of the background thread |
//! | `observing` | counts, profiles, recordings, guarded blocks, and the pages that other processes read |
//!
//! `record` is what the first two share.

#[cfg(loom)]
mod background;
#[cfg(loom)]
mod hand_over;
#[cfg(loom)]
#[path = "../../src/inbox/tests/nodes.rs"]
mod nodes;
#[cfg(loom)]
mod observing;
#[cfg(loom)]
mod publication;
#[cfg(loom)]
mod record;
mod stated;

#[cfg(loom)]
use freestone_base::inbox::Node;
