//! `cargo xtask hotpath`: the instructions of the fast paths, counted in the release build and held to a golden file.
//!
//! A fast path is followed from the function's first instruction: conditional branches out are counted and not taken (they lead to the
//! rare cases, which the compiler puts last), until `ret`.

use crate::run::{cargo, command, library, output, root, target_dir};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A function and its budget.
struct Budget {
    name: &'static str,
    instructions: usize,
    /// Whether users get it inlined: the wrapper's own frame and return are then not counted.
    inlined: bool,
}

const IN_LIBRARY: [Budget; 2] = [
    Budget { name: "malloc", instructions: 17, inlined: false },
    Budget { name: "free", instructions: 19, inlined: false },
];
const IN_EXAMPLE: [Budget; 2] = [
    Budget { name: "hotpath_box_new", instructions: 9, inlined: true },
    Budget { name: "hotpath_box_drop", instructions: 9, inlined: true },
];

/// Branches a fast path may have.
const BRANCHES: usize = 4;

/// Counts, and compares or blesses.
pub(crate) fn run(bless: bool) -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("   the golden file is for x86-64: nothing to compare here");
        return Ok(());
    }
    let library = library()?;
    cargo(&["build", "--quiet", "--release", "--package", "freestone", "--example", "hotpath"])?;
    let example = target_dir().join("release/examples/hotpath");
    let mut listing = String::new();
    for (file, budgets) in [(&library, &IN_LIBRARY), (&example, &IN_EXAMPLE)] {
        for budget in budgets {
            listing.push_str(&measure(file, budget)?);
        }
    }
    let golden = root().join("hotpath.golden");
    if bless {
        fs::write(&golden, listing).context("cannot write hotpath.golden")?;
        return Ok(());
    }
    let expected =
        fs::read_to_string(&golden).context("hotpath.golden is missing; `cargo xtask hotpath --bless` writes it")?;
    if expected != listing {
        bail!(
            "the hot paths differ from hotpath.golden. Now:\n{listing}\nIf that is meant, `cargo xtask hotpath --bless`"
        );
    }
    listing.lines().filter(|line| line.starts_with('#')).for_each(|line| eprintln!("   {line}"));
    Ok(())
}

/// The fast path of one function as text, within its budget.
fn measure(file: &Path, budget: &Budget) -> Result<String> {
    let path = file.to_string_lossy().into_owned();
    let option = format!("--disassemble={}", budget.name);
    let text = output(command("objdump", &["--no-show-raw-insn", &option, &path]))?;
    let mut path = fast_path(&text).with_context(|| format!("no function {} in {path}", budget.name))?;
    if budget.inlined {
        path.retain(|line| !["push", "pop", "ret"].iter().any(|frame| line.starts_with(frame)));
    }
    let is_branch = |line: &&String| line.starts_with('j') && !line.starts_with("jmp");
    let (n, branches) = (path.len(), path.iter().filter(is_branch).count());
    if n > budget.instructions || branches > BRANCHES {
        bail!(
            "{}: {n} instructions, {branches} branches; {} and {BRANCHES} are allowed",
            budget.name,
            budget.instructions
        );
    }
    if let Some(line) = path.iter().find(|line| line.starts_with("call") || line.starts_with("lock")) {
        bail!("{}: `{line}` on the fast path", budget.name);
    }
    if path.iter().filter(|line| line.contains("%fs:")).count() != 1 {
        bail!("{}: the fast path reads thread-local memory other than once", budget.name);
    }
    let mut listing = format!("# {}: {n} instructions, {branches} branches\n", budget.name);
    for line in &path {
        writeln!(listing, "{line}")?;
    }
    Ok(listing)
}

/// Mnemonics and register operands up to the first `ret`; addresses, which move from build to build, are left out.
fn fast_path(disassembly: &str) -> Option<Vec<String>> {
    let mut path = Vec::new();
    for line in disassembly.lines() {
        let Some((address, code)) = line.split_once(":\t") else { continue };
        if u64::from_str_radix(address.trim(), 16).is_err() {
            continue;
        }
        let code = code.split('#').next()?.trim();
        let (mnemonic, operands) = code.split_once(' ').unwrap_or((code, ""));
        let operands = match mnemonic.starts_with('j') {
            true => String::new(),
            false => operands.trim().split(',').map(without_address).collect::<Vec<_>>().join(","),
        };
        path.push(format!("{mnemonic} {operands}").trim().to_owned());
        if mnemonic == "ret" {
            return Some(path);
        }
    }
    None
}

fn without_address(operand: &str) -> String {
    if operand.ends_with("(%rip)") || operand.starts_with("$0xfffff") {
        "ADDRESS".to_owned()
    } else {
        operand.to_owned()
    }
}
