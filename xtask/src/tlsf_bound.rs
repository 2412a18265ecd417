//! Reads the bound of TLSF's calls from the machine code: the longest path through each.
//!
//! `allocate` and `deallocate` have no loop on their ordinary paths, so the longest path from entry to `ret` without a call bounds every
//! operation on every heap, not only those that a test executes. A call leaves such a path for the rare cases only: alignments above 16,
//! refusals, and the diagnosis of a bad address. With `--operations`, a program executes random calls in single steps and counts the instructions
//! of these cases as well. That is a sample, because each step takes microseconds.

use crate::hotpath::listing;
use crate::process::{build_example, command, output, root, run, target};
use anyhow::{Context, Result, bail};

/// The most instructions that a call may take. The longest path of `deallocate` merges with both neighbours, empties both their lists, and
/// starts a third list; in a heap of up to four regions it first finds the region (four instructions for each doubling).
const BOUNDS: [(&str, usize); 4] = [
    ("tlsf_bound_allocate", 120),
    ("tlsf_bound_deallocate_of_one_region", 120),
    ("tlsf_bound_deallocate", 120),
    ("tlsf_bound_deallocate_unchecked", 100),
];

/// Prints the longest paths and fails if one exceeds its bound in [`BOUNDS`]; then counts `operations` calls in single steps.
pub(crate) fn check(operations: usize) -> Result<()> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        println!("skipped: instructions are counted on x86-64 Linux");
        return Ok(());
    }
    build_example("freestone-tlsf", "tlsf_bound", &[])?;
    let path = target().join("release/examples/tlsf_bound");
    let path = path.to_str().context("the target folder's name is not text")?;
    let text = output(&mut command("objdump", &["-d", "-C", "--no-show-raw-insn", "-M", "intel", path]))?;
    no_panic_in(&text)?;
    println!("longest paths through the machine code; they bound every call on every heap:");
    for (symbol, bound) in BOUNDS {
        leaves_only_rarely(&text, symbol)?;
        let longest = listing::hot_path(&text, symbol).with_context(|| format!("{symbol} has no path to `ret`"))?;
        let n = longest.len(false);
        println!("{symbol:35} at most {n} instructions, {} branches (bound: {bound})", longest.branches());
        if n > bound {
            bail!("{symbol} takes {n} instructions, at most {bound} are allowed:\n{}", longest.text());
        }
    }
    if operations > 0 {
        println!("a sample of {operations} random calls, counted in single steps:");
        run(command(path, &[&operations.to_string()]).current_dir(root()))?;
    }
    Ok(())
}

/// Fails if `symbol` calls a function other than those of the rare cases: the longest path would not include its instructions.
fn leaves_only_rarely(disassembly: &str, symbol: &str) -> Result<()> {
    let head = format!("<{symbol}>:");
    let lines =
        disassembly.lines().skip_while(|line| !line.ends_with(&head)).skip(1).take_while(|line| !line.is_empty());
    let mut calls = lines.filter(|line| line.contains("\tcall ") || line.contains("\tjmp ") && !line.contains(symbol));
    match calls.find(|line| !["::allocate_rarely", "::diagnose"].iter().any(|name| line.contains(name))) {
        Some(other) => bail!("{symbol} makes a call that is not counted: {}", other.trim()),
        None => Ok(()),
    }
}

/// Fails if a function of the crate calls one that panics.
fn no_panic_in(disassembly: &str) -> Result<()> {
    let (mut function, mut n_functions) = ("", 0);
    for line in disassembly.lines() {
        if let Some((_, name)) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            function = name;
            n_functions += usize::from(is_ours(function));
        } else if is_ours(function)
            && ["panic", "unwrap_failed", "expect_failed"].iter().any(|name| line.contains(name))
        {
            bail!("{function} may panic: {}", line.trim());
        }
    }
    println!("{n_functions} functions of the heap checked; none can panic");
    if n_functions < BOUNDS.len() { bail!("the functions of the heap were not found") } else { Ok(()) }
}

fn is_ours(function: &str) -> bool {
    function.starts_with("freestone_tlsf::")
        || function.starts_with("<freestone_tlsf::")
        || function.starts_with("tlsf_bound_")
}
