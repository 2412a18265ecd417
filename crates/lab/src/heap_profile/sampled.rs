//! A dump as it was read: addresses, and estimates.

use crate::heap_profile::usage::Usage;
use crate::symbols::mapping::Mapping;

/// The allocations with one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Return addresses, innermost first.
    pub(crate) stack: Vec<u64>,
    /// What they hold.
    pub(crate) usage: Usage,
}

/// A dump, with its sampling undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeapProfile {
    /// Bytes between two samples on average.
    pub(crate) interval: u64,
    /// One for each stack.
    pub(crate) samples: Vec<Sample>,
    /// Samples that the library could not keep.
    pub(crate) lost: u64,
    /// Where the process's files were mapped.
    pub(crate) mappings: Vec<Mapping>,
}
