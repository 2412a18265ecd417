//! What the page heap decides, apart from how it does it: numbers and a clock in, a decision out.
//!
//! Nothing here uses runs, locks, options or the kernel. `PageHeap` reads the options and the counts, calls a policy, and acts on the result.
//!
//! | file | decides |
//! |---|---|
//! | [`churn`] | whether large blocks come and go, and how much dirty memory may stay for them |
//! | [`density`] | whether large blocks are written densely enough for huge pages |
//! | [`early_purge`] | how much dirty memory goes back long before the decay time |
//! | [`growth`] | how much address space and memory to take ahead of need |
//! | [`guarding`] | which large blocks and spans get a guard behind them, and how |
//! | [`held_back`] | how many freed large blocks keep their addresses |
//! | [`large_cache_share`] | how much memory the large-run caches of all threads may hold |
//! | [`limit`] | whether an allocation fits the limits, and what to do if it does not |
//! | [`mappings`] | how long a large block has to be to get a mapping of its own |
//! | [`purge_bound`] | which dirty memory goes back to the kernel, and in what pieces |

pub(super) mod churn;
pub(super) mod density;
pub(super) mod early_purge;
pub(super) mod growth;
pub(super) mod guarding;
pub(super) mod held_back;
pub(super) mod large_cache_share;
pub(super) mod limit;
pub(super) mod mappings;
pub(super) mod purge_bound;
