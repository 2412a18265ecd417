//! `freestone bench --self-test`: an allocator against itself. Any difference that is claimed is an error of the method.

use crate::allocator::description::Allocator;
use crate::measure::statistics::Verdict;
use crate::measure::summary::{Figure, Summary};
use crate::show::verdict_text::verdict;

/// Appended to the name of an allocator that runs against itself.
const AGAIN: &str = " again";

/// The first allocator, under two names.
pub(super) fn first_twice(allocators: Vec<Allocator>) -> Vec<Allocator> {
    let first = allocators.into_iter().next().unwrap_or_else(Allocator::system);
    let again = Allocator { name: format!("{}{AGAIN}", first.name), ..first.clone() };
    vec![first, again]
}

/// Prints where the allocator seems to differ from itself; returns the exit status.
pub(super) fn judge(summary: &Summary) -> u8 {
    let (mut compared, mut claims) = (0, Vec::new());
    for subject in summary.subjects() {
        for allocator in summary.allocators() {
            for figure in [Figure::Time, Figure::Cpu, Figure::PeakRss, Figure::Faults] {
                let Some(ratio) = summary.cell(subject, allocator, figure).and_then(|cell| cell.ratio) else {
                    continue;
                };
                compared += 1;
                if ratio.verdict != Verdict::NoDifferenceSeen {
                    claims.push(format!("{subject}, {}: {}", figure.name(), verdict(&ratio)));
                }
            }
        }
    }
    eprintln!("self-test: {compared} figures of the same library compared, a difference claimed in {}", claims.len());
    claims.iter().for_each(|claim| eprintln!("self-test: {claim}"));
    u8::from(!claims.is_empty() || compared == 0)
}

#[cfg(test)]
mod tests;
