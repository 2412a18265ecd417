//! Experiment A: TLSF over an arena. One block is allocated and freed again, at 1, 10, 100 and 500 KiB.
//!
//! Source: TLSF on Go's experimental arena. The published columns are Go's `make`, `arena.MakeSlice` and that TLSF. Measured here are the same
//! three in Go (if Go is installed), Freestone's TLSF in Rust with rlsf and talc beside it, and `malloc` under each allocator.

use crate::measure::summary::{Figure, Summary};
use crate::show::published::comparison::{Comparison, NO_FIGURE, has, shown};
use crate::show::quantity;

/// The heaps over fixed memory inside the process: their names, and the workload's parameter.
pub(crate) const HEAPS: [(&str, &str); 3] =
    [("TLSF (Rust)", "heap=1"), ("rlsf (Rust)", "heap=2"), ("talc (Rust)", "heap=3")];

/// Sizes in bytes, their names, and the published ns/op of make, arena and TLSF, on M2 / EPYC, for 1000 operations.
pub(crate) const SIZES: [(&str, &str, [&str; 3]); 4] = [
    ("1024", "1KiB", ["198.5 / 101.2", "17.9 / 13.3", "461 / 872"]),
    ("10240", "10KiB", ["813 / 820", "965 / 609", "806 / 824"]),
    ("102400", "100KiB", ["8322 / 6242", "24132 / 10240", "271 / 816"]),
    ("512000", "500KiB", ["15390 / 19558", "129998 / 48764", "599 / 786"]),
];

/// Published ns/op for ten million operations on M2: size, make, arena, TLSF.
const MANY: [(&str, &str, &str, &str); 2] = [("1KiB", "83.9", "162.5", "14.3"), ("10KiB", "286.5", "1245", "13.1")];

/// The two numbers of operations.
pub(crate) const AMOUNTS: [(&str, &str); 2] = [("1000", "1 000"), ("10000000", "10 000 000")];

/// What Go's benchmark compares, in the order of the table.
pub(crate) const GO_ALLOCATORS: [&str; 6] = ["make", "arena", "sync.Pool", "tlsf", "locked", "sharded"];

/// One table per number of operations.
pub(crate) fn comparisons(summary: &Summary) -> Vec<Comparison> {
    AMOUNTS.iter().map(|(ops, shown_ops)| of_amount(summary, ops, shown_ops)).collect()
}

fn of_amount(summary: &Summary, ops: &str, shown_ops: &str) -> Comparison {
    let title =
        format!("A: allocating and freeing one block, {shown_ops} operations (Go: for 200 ms): time of one operation");
    let mut comparison = Comparison::new(title, &["", "1 KiB", "10 KiB", "100 KiB", "500 KiB"]);
    if !has(summary, &subject(SIZES[0].0, ops)) {
        return comparison;
    }
    for allocator in summary.allocators() {
        let mut row = vec![if is_inside(allocator) {
            allocator.clone()
        } else {
            format!("malloc, {}", summary.label(allocator))
        }];
        row.extend(SIZES.iter().map(|(bytes, _, _)| shown(summary, &subject(bytes, ops), allocator, Figure::Time)));
        comparison.rows.push(row);
    }
    for allocator in GO_ALLOCATORS {
        let times: Vec<_> =
            SIZES.iter().map(|(_, size, _)| summary.kept_figure(&go_subject(size), allocator)).collect();
        if times.iter().any(Option::is_some) {
            let shown = times.iter().map(|time| time.map_or(NO_FIGURE.into(), quantity::time));
            comparison.rows.push(std::iter::once(format!("Go, {allocator}")).chain(shown).collect());
        }
    }
    comparison
        .rows
        .extend(["make", "arena", "TLSF"].iter().enumerate().map(|(index, name)| published(ops, index, name)));
    comparison
}

/// Whether this is a heap over fixed memory inside the process.
fn is_inside(allocator: &str) -> bool {
    HEAPS.iter().any(|(name, _)| *name == allocator)
}

/// The name of the job with these parameters.
pub(crate) fn subject(bytes: &str, ops: &str) -> String {
    format!("alloc_free_pair size={bytes} ops={ops}")
}

/// The name of a size in Go's half.
pub(crate) fn go_subject(size: &str) -> String {
    format!("Go pair {size}")
}

fn published(ops: &str, index: usize, name: &str) -> Vec<String> {
    let first = ops == AMOUNTS[0].0;
    let mut row = vec![format!("published, {name} ({})", if first { "M2 / EPYC, ns" } else { "M2, ns" })];
    row.extend(SIZES.iter().map(|(_, size, few)| {
        if first {
            return few[index].to_owned();
        }
        let many = MANY.iter().find(|row| row.0 == *size);
        many.map_or(NO_FIGURE, |row| [row.1, row.2, row.3][index]).to_owned()
    }));
    row
}
