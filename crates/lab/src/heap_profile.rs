//! Heap profiles: which calls hold the memory of a process.
//!
//! ```text
//!  dump (text, `heap_v2`) ─▶ HeapProfile ─▶ NamedProfile ─┬▶ table        on the terminal, and as JSON
//!                            addresses      functions     ├▶ pprof_file   for `go tool pprof`
//!                                                         ├▶ collapsed    stacks in lines
//!                                                         ├▶ flame_graph  SVG
//!                                                         └▶ page         HTML, with all of it
//! ```
//!
//! The library samples: an allocation of `b` bytes is in the profile with a probability of `1 - exp(-b / interval)`. Reading a dump divides by it,
//! as pprof does, so that all figures from here on are estimates of the program's.
//!
//! | module | owns |
//! |---|---|
//! | [`usage`], [`sampled`] | figures; a dump as it was read |
//! | [`dump`] | reading the library's text |
//! | [`named`] | stacks of functions; the difference of two profiles |
//! | [`table`] | who holds memory, by function |
//! | [`pprof_file`], [`collapsed`], [`flame_graph`], [`page`] | the files that are written |

pub(crate) mod collapsed;
pub(crate) mod dump;
pub(crate) mod flame_graph;
pub(crate) mod named;
pub(crate) mod page;
pub(crate) mod pprof_file;
pub(crate) mod sampled;
pub(crate) mod table;
pub(crate) mod usage;
