//! Counts the instructions of the hot paths in the release build's disassembly.
//!
//! The hot path of a function is its longest path from entry to `ret` that makes no call and does not leave the function. A slow path that
//! gets inlined makes it longer; if every path makes a call, there is none. `hotpath.golden` contains the instructions of that path without
//! addresses, so that each change of the machine code shows in review.
//!
//! The processor keeps what it has decoded by cache line of the code, so a path that begins late in one takes longer: `crates/capi/order.ld` says where `malloc`
//! and `free` begin.
//!
//! The functions of the library are counted whole, including `ret`. `Box::new` and its drop are inlined into their callers; the frame of the caller in
//! the example (`push`, `pop`, `ret`) is not counted.

use crate::process::{build_example, build_library, command, output, root, target};
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::fs;

pub(crate) mod listing;
use listing::Path;

/// The most instructions a function may take, and the most cache lines that these may lie in.
struct Budget {
    symbol: &'static str,
    instructions: usize,
    cache_lines: usize,
    inlined: bool,
}

const LIBRARY: [Budget; 6] = [
    Budget { symbol: "malloc", instructions: 17, cache_lines: 2, inlined: false },
    Budget { symbol: "free", instructions: 24, cache_lines: 2, inlined: false },
    Budget { symbol: "operator new(unsigned long)", instructions: 17, cache_lines: 4, inlined: false },
    Budget { symbol: "operator new[](unsigned long)", instructions: 17, cache_lines: 4, inlined: false },
    Budget { symbol: "operator delete(void*, unsigned long)", instructions: 24, cache_lines: 4, inlined: false },
    Budget { symbol: "operator delete[](void*)", instructions: 24, cache_lines: 4, inlined: false },
];

const EXAMPLE: [Budget; 2] = [
    Budget { symbol: "hotpath_box_new", instructions: 10, cache_lines: 3, inlined: true },
    Budget { symbol: "hotpath_box_drop", instructions: 13, cache_lines: 3, inlined: true },
];

const BRANCHES_MOST: usize = 4;

fn disassemble(binary: &str) -> Result<String> {
    let path = target().join("release").join(binary);
    let path = path.to_str().context("the target folder's name is not text")?;
    output(&mut command("objdump", &["-d", "-C", "--no-show-raw-insn", "-M", "intel", path]))
}

fn complaints(budget: &Budget, path: &Path) -> Vec<String> {
    let bounds = [
        ("instructions", path.len(budget.inlined), budget.instructions),
        ("cache lines", path.cache_lines(), budget.cache_lines),
        ("branches", path.branches(), BRANCHES_MOST),
        ("lock prefixes", path.locks(), 0),
        ("thread-local loads", path.tls_loads(), 1),
    ];
    let over = bounds.into_iter().filter(|(_, n, most)| n > most);
    over.map(|(what, n, most)| format!("{}: {n} {what}, at most {most} allowed", budget.symbol)).collect()
}

/// Counts the hot paths, prints the counts and compares the instructions with the golden file; with `bless`, writes that file.
pub(crate) fn run(bless: bool) -> Result<()> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        println!("skipped: the hot paths are counted on x86-64 Linux");
        return Ok(());
    }
    build_library()?;
    // As in a program of its own, which is compiled for speed: the workspace compiles the package, and with it the example, for size.
    build_example("freestone", "hotpath", &["--config", "profile.release.package.freestone.opt-level=3"])?;
    let (mut golden, mut wrong) = (String::new(), Vec::new());
    for (binary, budgets) in [("libfreestone.so", &LIBRARY[..]), ("examples/hotpath", &EXAMPLE)] {
        let text = disassemble(binary)?;
        for budget in budgets {
            let path = listing::hot_path(&text, budget.symbol)
                .with_context(|| format!("{} in {binary} has no path to `ret` without a call", budget.symbol))?;
            let n = path.len(budget.inlined);
            println!(
                "{:37} {n:2} instructions (at most {}) in {} cache lines, {} branches",
                budget.symbol,
                budget.instructions,
                path.cache_lines(),
                path.branches()
            );
            let _ = writeln!(golden, "{} ({n} instructions)\n{}", budget.symbol, path.text());
            wrong.extend(complaints(budget, &path));
        }
    }
    if !wrong.is_empty() {
        bail!("{}\n{golden}", wrong.join("\n"));
    }
    compare(&golden, bless)
}

/// The counts in the text of `hotpath.golden`, by symbol.
pub(crate) fn counts(golden: &str) -> Vec<(String, u64)> {
    let heads = golden.lines().filter_map(|line| line.strip_suffix(" instructions)")?.split_once(" ("));
    heads.filter_map(|(symbol, n)| Some((symbol.to_owned(), n.parse().ok()?))).collect()
}

/// The paths of a text as `hotpath.golden`, the instructions of each sorted: the compiler arranges independent ones differently from one place of the
/// sources to another.
fn in_any_order(golden: &str) -> Vec<Vec<&str>> {
    let mut paths: Vec<Vec<_>> = golden.split("\n\n").map(|path| path.lines().collect()).collect();
    paths.iter_mut().for_each(|path| path.sort_unstable());
    paths
}

fn compare(golden: &str, bless: bool) -> Result<()> {
    let file = root().join("hotpath.golden");
    if bless {
        return fs::write(file, golden).context("cannot write hotpath.golden");
    }
    let held =
        fs::read_to_string(file).context("cannot read hotpath.golden: `cargo xtask hotpath --bless` writes it")?;
    if in_any_order(&held) != in_any_order(golden) {
        bail!("the hot paths differ from hotpath.golden; read them, then run `cargo xtask hotpath --bless`:\n{golden}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_order_of_instructions_may_differ_and_only_within_a_path() {
        let golden = "malloc (3 instructions)\n    lea rax\n    mov rcx\n    ret\n\nfree (2 instructions)\n    inc rdx\n    ret\n\n";
        let of = |from: &str, to: &str| in_any_order(&golden.replace(from, to)) == in_any_order(golden);
        assert!(of("lea rax\n    mov rcx", "mov rcx\n    lea rax"));
        assert!(!of("lea rax", "lea rbx") && !of("    mov rcx\n", "") && !of("inc rdx", "mov rcx"));
        assert!(!of("(3", "(4") && !of("free", "delete"));
    }
}
