//! The list of all workloads.

use crate::workload::definition::Workload;
use crate::workload::{
    alloc_free_pair, binary_trees, burst_keep_every_20th, calloc_huge, central_refill, containers, false_sharing,
    fragmentation_phases, free_only_consumer, growing_buffers, idle_after_burst, idle_owner, idle_threads, large_churn,
    larson, latency_tail, many_connections, mass_frees, pool_calloc, producer_consumer, programs, random_mixed,
    realloc_growth, repeated_bursts, replay, shifting_sizes, startup, threads_come_and_go, tiny_hot, web_server,
};

/// Every workload, in the order of the tables.
pub(crate) static ALL: &[&Workload] = &[
    &random_mixed::WORKLOAD,
    &tiny_hot::WORKLOAD,
    &alloc_free_pair::WORKLOAD,
    &pool_calloc::WORKLOAD,
    &web_server::WORKLOAD,
    &binary_trees::WORKLOAD,
    &central_refill::WORKLOAD,
    &containers::STRINGS,
    &containers::VECTORS,
    &containers::MAP,
    &larson::WORKLOAD,
    &producer_consumer::WORKLOAD,
    &threads_come_and_go::WORKLOAD,
    &many_connections::WORKLOAD,
    &false_sharing::ACTIVE,
    &false_sharing::PASSIVE,
    &large_churn::WORKLOAD,
    &calloc_huge::WORKLOAD,
    &realloc_growth::WORKLOAD,
    &growing_buffers::WORKLOAD,
    &fragmentation_phases::WORKLOAD,
    &shifting_sizes::WORKLOAD,
    &free_only_consumer::WORKLOAD,
    &repeated_bursts::WORKLOAD,
    &idle_after_burst::WORKLOAD,
    &idle_threads::WORKLOAD,
    &idle_owner::WORKLOAD,
    &burst_keep_every_20th::WORKLOAD,
    &latency_tail::WORKLOAD,
    &mass_frees::WORKLOAD,
    &startup::WORKLOAD,
    &replay::PYTHON,
    &replay::SQLITE,
    &replay::GCC,
    &replay::REDIS,
    &programs::PYTHON3,
    &programs::SQLITE3,
    &programs::GCC,
    &programs::GIT,
    &programs::REDIS,
];

/// The workload called `name`; also that of `freestone replay`, which is in no list.
pub(crate) fn find(name: &str) -> Option<&'static Workload> {
    ALL.iter().copied().chain([&replay::WORKLOAD]).find(|workload| workload.name == name)
}

/// The workload that was measured as `subject`: a workload's name, followed by parameters if any were set.
pub(crate) fn of_subject(subject: &str) -> Option<&'static Workload> {
    find(subject.split(' ').next()?)
}

#[cfg(test)]
mod tests;
