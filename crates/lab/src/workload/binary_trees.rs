//! Binary trees that are built and dropped, beside one that stays.
//!
//! Source: the binary-trees program of the Computer Language Benchmarks Game, after Hans Boehm's GCBench; experiment C measured Go's central
//! lists with it. Nodes are Rust boxes, so that the program's own allocator interface is part of the path. An operation is one node.
//!
//! Does not show: mixed sizes; every node has 16 bytes.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::failure;
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};

pub(crate) static WORKLOAD: Workload = Workload {
    name: "binary_trees",
    models: "pointer structures that are built and dropped, beside one that stays",
    hides: "mixed sizes",
    shows: PrimaryFigure::Time,
    params: &[Param::scaled("depth", [18, 20, 22], "depth of the longest-lived tree")],
    run,
    run_on_null: None,
};

struct Node {
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

fn grow(depth: u64) -> Option<Box<Node>> {
    let child = || if depth == 0 { None } else { grow(depth - 1) };
    Some(Box::new(Node { left: child(), right: child() }))
}

fn count(node: &Option<Box<Node>>) -> u64 {
    node.as_ref().map_or(0, |node| 1 + count(&node.left) + count(&node.right))
}

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let depth = params.get("depth").clamp(4, 26);
    let (nodes, expected) = meter.section(|_| {
        let long_lived = grow(depth);
        let (mut nodes, mut expected) = (0, 0);
        for short in (4..=depth).step_by(4) {
            for _ in 0..1_u64 << (depth - short) {
                nodes += count(&grow(short));
                expected += (2 << short) - 1;
            }
        }
        (nodes + count(&long_lived), expected + (2 << depth) - 1)
    });
    if nodes != expected {
        failure::broken(&format!("a tree lost nodes: {nodes} were counted, {expected} were made"));
    }
    Outcome::new(nodes, nodes)
}
