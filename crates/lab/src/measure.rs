//! Measuring: running every contender in interleaved rounds, and comparing the results.
//!
//! | module | owns |
//! |---|---|
//! | [`measurement`] | one measurement under way: results file, runs, warnings |
//! | [`commands`] | rounds of commands: real programs, servers and their clients |
//! | [`rounds`], [`order`] | runs of workloads, round by round; the order within a round |
//! | [`counts`] | instructions and cache misses under callgrind |
//! | [`events`] | what callgrind's model does not see: faults, system calls, atomic operations |
//! | [`atomics`] | atomic operations and acquisitions of locks among the instructions that callgrind counted |
//! | [`summary`], [`statistics`] | medians, ratios, and which differences may be claimed |
//! | [`ranking`] | which allocator needs least, and where Freestone is not the best |
//! | [`doubts`] | reasons for doubt: in the machine, the figures, the files |

mod atomics;
pub(crate) mod commands;
pub(crate) mod counts;
pub(crate) mod doubts;
pub(crate) mod events;
pub(crate) mod measurement;
pub(crate) mod order;
pub(crate) mod ranking;
pub(crate) mod rounds;
pub(crate) mod statistics;
pub(crate) mod summary;
