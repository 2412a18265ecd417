//! Traces: reading them, putting the events of all threads in order, and what can be said of them.
//!
//! ```text
//!  file ─▶ Recording: a stream of events for each recorder ─▶ Timeline: one sequence of steps about numbered blocks
//!                            │                                    ├─▶ Analysis: sizes, lifetimes, threads, live bytes
//!                            └─▶ strip: the same without addresses └─▶ plan: what each thread of a replay does
//! ```
//!
//! Layer: the lowest of the lab; the format is the crate `freestone-trace`'s.
//!
//! | module | owns |
//! |---|---|
//! | [`recording`] | a trace that was read, and what is damaged in it |
//! | [`timeline`] | the order of all events |
//! | [`analysis`] | sizes, lifetimes, threads, live bytes over time |
//! | [`strip`] | a trace without addresses and arguments |
//! | [`profile_beside`] | the name of the heap profile that has a trace's stacks |
//! | [`plan`] | what each thread of a replay does, as a file |

pub(crate) mod analysis;
pub(crate) mod plan;
pub(crate) mod profile_beside;
pub(crate) mod recording;
pub(crate) mod strip;
pub(crate) mod timeline;
