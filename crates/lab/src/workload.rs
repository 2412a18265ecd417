//! The built-in workloads. Each runs in a process of its own, calls `malloc` through the C symbol and prints one JSON record.
//!
//! Layer: the lowest folder of the lab. It uses nothing of the lab except [`crate::suggestion`], [`crate::trace`] and [`crate::scratch_file`].
//!
//! | module | owns |
//! |---|---|
//! | [`definition`], [`catalogue`] | what a workload is; the list of all workloads |
//! | [`entry`] | the process: parse the arguments, run the workload, print the record |
//! | [`params`], [`workload_record`] | named parameters; the record |
//! | [`meter`], [`counters`], [`own_process`], [`loaded_allocator`] | time, memory and counters of the measured section; which library answers `malloc` |
//! | [`stamped_block`], [`tested_heap`], [`null_allocator`], [`failure`] | blocks, the C allocator, a stand-in without an allocator, exit statuses |
//! | [`tlsf_heap`], [`tlsf_peers`], [`calloc_front_end`], [`linear_pool`] | heaps and pools inside the process, for the experiments |
//! | [`random`] | repeatable random numbers |
//! | [`replay`] | the calls of a recorded program |
//! | [`demo_program`] | the program that `freestone run` shows by itself |
//! | the others | one workload each: what it models, where it comes from, what it does not show |

mod call_times;
pub(crate) mod calloc_front_end;
pub(crate) mod catalogue;
pub(crate) mod counters;
mod cpp_heap;
pub(crate) mod definition;
pub(crate) mod demo_program;
pub(crate) mod entry;
pub(crate) mod failure;
pub(crate) mod linear_pool;
pub(crate) mod loaded_allocator;
pub(crate) mod meter;
pub(crate) mod null_allocator;
pub(crate) mod own_process;
pub(crate) mod params;
pub(crate) mod random;
pub(crate) mod replay;
pub(crate) mod stamped_block;
pub(crate) mod tested_heap;
pub(crate) mod tlsf_heap;
pub(crate) mod tlsf_peers;
pub(crate) mod workload_record;

mod alloc_free_pair;
mod binary_trees;
mod burst_keep_every_20th;
mod calloc_huge;
mod central_refill;
mod containers;
mod false_sharing;
mod fragmentation_phases;
mod free_only_consumer;
mod growing_buffers;
mod idle_after_burst;
mod idle_owner;
mod idle_threads;
mod large_churn;
mod larson;
mod latency_tail;
mod many_connections;
mod mass_frees;
mod pool_calloc;
mod producer_consumer;
pub(crate) mod programs;
mod random_mixed;
mod realloc_growth;
mod repeated_bursts;
mod shifting_sizes;
mod startup;
mod threads_come_and_go;
mod tiny_hot;
mod web_server;
