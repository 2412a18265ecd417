//! The bound of TLSF's calls, read from the machine code: the longest way through each.
//!
//! `allocate` and `deallocate` have no loop on their ordinary ways, so the longest way from entry to `ret` that makes no call is a
//! bound over every operation on every heap, not only over those that some test happened to do. What such a way leaves by a
//! call is the rare half: alignments above 16, refusals, and the diagnosis of a bad address. Of that half, and as a check on the
//! reading, single steps are counted in a run (`--operations`): a sample, for a step takes microseconds.

use crate::hotpath::listing;
use crate::process::{cargo, command, output, root, run, target};
use anyhow::{Context, Result, bail};

/// Instructions that no call may pass. The longest way of a `deallocate` merges with both neighbours, empties both their lists, and
/// begins a third; where a heap may have four regions, it finds the right one before (four instructions for each doubling).
const BOUNDS: [(&str, usize); 4] = [
    ("tlsf_bound_allocate", 120),
    ("tlsf_bound_deallocate_of_one_region", 120),
    ("tlsf_bound_deallocate", 120),
    ("tlsf_bound_deallocate_unchecked", 100),
];

/// Reads the longest ways, prints them, and fails if one is longer than [`BOUNDS`] allow; then counts `operations` calls step by step.
pub(crate) fn check(operations: usize) -> Result<()> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        println!("skipped: instructions are counted on x86-64 Linux");
        return Ok(());
    }
    run(&mut cargo(&["build", "--release", "--package", "freestone-tlsf", "--example", "tlsf_bound"]))?;
    let path = target().join("release/examples/tlsf_bound");
    let path = path.to_str().context("the target folder's name is not text")?;
    let text = output(&mut command("objdump", &["-d", "-C", "--no-show-raw-insn", "-M", "intel", path]))?;
    no_panic_in(&text)?;
    println!("the longest ways through the machine code, which bound every call on every heap:");
    for (symbol, bound) in BOUNDS {
        leaves_only_rarely(&text, symbol)?;
        let longest = listing::hot_path(&text, symbol).with_context(|| format!("{symbol} has no way to `ret`"))?;
        let n = longest.len(false);
        println!("{symbol:35} at most {n} instructions, {} branches (bound: {bound})", longest.branches());
        if n > bound {
            bail!("{symbol} takes {n} instructions, {bound} are promised:\n{}", longest.text());
        }
    }
    if operations > 0 {
        println!("a sample of {operations} random calls, counted step by step:");
        run(command(path, &[&operations.to_string()]).current_dir(root()))?;
    }
    Ok(())
}

/// Fails if `symbol` calls anything but the rare half: its instructions would be missing from the longest way.
fn leaves_only_rarely(disassembly: &str, symbol: &str) -> Result<()> {
    let head = format!("<{symbol}>:");
    let lines =
        disassembly.lines().skip_while(|line| !line.ends_with(&head)).skip(1).take_while(|line| !line.is_empty());
    let mut calls = lines.filter(|line| line.contains("\tcall ") || line.contains("\tjmp ") && !line.contains(symbol));
    match calls.find(|line| !["::allocate_rarely", "::diagnose"].iter().any(|name| line.contains(name))) {
        Some(other) => bail!("{symbol} leaves by a call that is not counted: {}", other.trim()),
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
    println!("{n_functions} functions of the heap, none of which panics");
    if n_functions < BOUNDS.len() { bail!("the functions were not found") } else { Ok(()) }
}

fn is_ours(function: &str) -> bool {
    function.starts_with("freestone_tlsf::")
        || function.starts_with("<freestone_tlsf::")
        || function.starts_with("tlsf_bound_")
}
