//! The published experiments: the authors' figures beside the measured ones.
//!
//! The published figures come from other machines. What can be compared are ratios within a column, never figures across columns.
//!
//! | module | experiment |
//! |---|---|
//! | [`arena`] | A: TLSF over an arena |
//! | [`remedies`] | B: HAKMEM's workloads and remedies |
//! | [`batched_refill`] | C: batched refill |
//! | [`pools`] | D: pools in front of calloc |
//! | [`growth`] | E: growth by realloc |
//! | [`comparison`] | the table that all of them fill in |

pub(crate) mod arena;
pub(crate) mod batched_refill;
pub(crate) mod comparison;
pub(crate) mod growth;
pub(crate) mod pools;
pub(crate) mod remedies;

use crate::measure::summary::Summary;
use comparison::Comparison;

/// The comparisons of every experiment whose workloads are in `summary`.
pub(crate) fn comparisons(summary: &Summary) -> Vec<Comparison> {
    [arena::comparisons, remedies::comparisons, batched_refill::comparisons, pools::comparisons, growth::comparisons]
        .into_iter()
        .flat_map(|of_one| of_one(summary))
        .filter(|comparison| !comparison.rows.is_empty())
        .collect()
}

#[cfg(test)]
mod tests;
