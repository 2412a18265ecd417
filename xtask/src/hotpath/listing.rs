//! One function's disassembly, and its hot path.

use std::collections::{BTreeMap, BTreeSet};

/// One instruction: its address and its text.
#[derive(Clone, Debug)]
struct Instruction {
    address: u64,
    text: String,
}

impl Instruction {
    fn mnemonic(&self) -> &str {
        self.text.split_whitespace().next().unwrap_or_default()
    }

    /// Where a direct jump goes.
    fn target(&self) -> Option<u64> {
        u64::from_str_radix(self.text.split_whitespace().nth(1)?, 16).ok()
    }

    fn is_frame(&self) -> bool {
        matches!(self.mnemonic(), "push" | "pop" | "ret")
    }

    /// The text without addresses: those change with every build.
    fn normalised(&self) -> String {
        if self.mnemonic().starts_with('j') {
            return format!("{} elsewhere", self.mnemonic());
        }
        let (code, symbol) = match self.text.split_once('#') {
            Some((code, note)) => (code.trim(), note.split_once('<').map(|(_, name)| name.trim_end_matches('>'))),
            None => (self.text.trim(), None),
        };
        let mut text = code.split_whitespace().collect::<Vec<_>>().join(" ");
        if let (Some(from), Some(name)) = (text.find("[rip+"), symbol) {
            let name = if name.starts_with("_GLOBAL_OFFSET_TABLE_") { "got" } else { name };
            let behind = text[from..].split_once(']').map_or("", |(_, behind)| behind);
            text = format!("{}[{name}]{behind}", &text[..from]);
        }
        // Thread-local offsets are the linker's business.
        if let Some(from) = text.find("0xffffffffffff") {
            text = format!("{}tpoff", &text[..from]);
        }
        text
    }
}

/// A path through a function.
#[derive(Debug)]
pub(crate) struct Path(Vec<Instruction>);

impl Path {
    /// Instructions; those of the frame are left out of an inlined one.
    pub(crate) fn len(&self, inlined: bool) -> usize {
        self.0.iter().filter(|instruction| !inlined || !instruction.is_frame()).count()
    }

    /// Lines of 64 bytes that the instructions begin in.
    pub(crate) fn cache_lines(&self) -> usize {
        self.0.iter().map(|at| at.address / 64).collect::<BTreeSet<_>>().len()
    }

    /// Conditional branches.
    pub(crate) fn branches(&self) -> usize {
        self.0.iter().filter(|at| at.mnemonic().starts_with('j') && at.mnemonic() != "jmp").count()
    }

    /// Atomic read-modify-writes.
    pub(crate) fn locks(&self) -> usize {
        self.0.iter().filter(|at| at.mnemonic() == "lock" || at.mnemonic() == "xchg" && at.text.contains("PTR")).count()
    }

    /// Loads through the thread pointer.
    pub(crate) fn tls_loads(&self) -> usize {
        self.0.iter().filter(|at| at.text.contains("fs:")).count()
    }

    /// The listing.
    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|at| format!("    {}\n", at.normalised())).collect()
    }
}

fn instructions_of(disassembly: &str, symbol: &str) -> Vec<Instruction> {
    let head = format!("<{symbol}>:");
    let lines =
        disassembly.lines().skip_while(|line| !line.ends_with(&head)).skip(1).take_while(|line| !line.is_empty());
    lines
        .filter_map(|line| {
            let (address, text) = line.trim().split_once(':')?;
            Some(Instruction { address: u64::from_str_radix(address, 16).ok()?, text: text.trim().to_owned() })
        })
        .collect()
}

/// The longest path from the function's entry to a `ret` without a call, a loop, or leaving the function; `None` if there is none.
pub(crate) fn hot_path(disassembly: &str, symbol: &str) -> Option<Path> {
    longest_way(&instructions_of(disassembly, symbol))
}

fn longest_way(code: &[Instruction]) -> Option<Path> {
    let places: BTreeMap<u64, usize> = code.iter().enumerate().map(|(index, at)| (at.address, index)).collect();
    let longest = longest_from(code, &places, 0, &mut vec![false; code.len()])?;
    Some(Path(longest.into_iter().map(|index| code[index].clone()).collect()))
}

fn longest_from(
    code: &[Instruction],
    places: &BTreeMap<u64, usize>,
    index: usize,
    on_the_way: &mut [bool],
) -> Option<Vec<usize>> {
    let at = code.get(index)?;
    if on_the_way[index] {
        return None;
    }
    let place = |at: &Instruction| at.target().and_then(|target| places.get(&target).copied());
    let nexts = match at.mnemonic() {
        "ret" => return Some(vec![index]),
        "call" | "int3" | "ud2" | "hlt" | "syscall" => return None,
        "jmp" => [place(at), None],
        name if name.starts_with('j') => [Some(index + 1), place(at)],
        _ => [Some(index + 1), None],
    };
    on_the_way[index] = true;
    let paths = nexts.into_iter().flatten().filter_map(|next| longest_from(code, places, next, on_the_way));
    let longest = paths.max_by_key(Vec::len);
    on_the_way[index] = false;
    longest.map(|rest| std::iter::once(index).chain(rest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "
0000000000001000 <pop>:
    1000:\tpush   rax
    1001:\tmov    rcx,QWORD PTR fs:[rax]
    1002:\ttest   rcx,rcx
    1003:\tje     1008 <pop+0x8>
    1004:\tlock inc QWORD PTR [rcx]
    1005:\tpop    rcx
    1006:\tret
    1008:\tcall   2000 <slow>
    1009:\tret

0000000000002000 <slow>:
    2000:\tjmp    3000 <elsewhere>
";

    #[test]
    fn the_hot_path_ends_in_ret_and_goes_round_the_call() {
        let path = hot_path(SAMPLE, "pop").expect("a path without a call");
        assert_eq!((path.len(false), path.len(true), path.branches()), (7, 4, 1));
        assert_eq!((path.locks(), path.tls_loads()), (1, 1));
        assert!(path.text().contains("je elsewhere"));
    }

    #[test]
    fn a_function_that_always_leaves_has_no_hot_path() {
        assert!(hot_path(SAMPLE, "slow").is_none());
        assert!(hot_path(SAMPLE, "absent").is_none());
    }

    #[test]
    fn a_path_is_in_the_cache_lines_that_its_instructions_begin_in() {
        for (code, lines) in [("3e:\tnop\n 3f:\tret", 1), ("3f:\tnop\n 40:\tret", 2), ("3f:\tnop\n 80:\tret", 2)] {
            let path = hot_path(&format!("0 <f>:\n {code}\n\n"), "f");
            assert_eq!(path.map(|path| path.cache_lines()), Some(lines), "{code}");
        }
    }

    #[test]
    fn an_address_is_named_and_the_operand_behind_it_kept() {
        let code = "0 <f>:\n 1:\tcmp    QWORD PTR [rip+0x1d079],rsi        # 3b388 <BOUND+0x8>\n 2:\tret\n\n";
        let path = hot_path(code, "f").expect("a path");
        assert!(path.text().contains("cmp QWORD PTR [BOUND+0x8],rsi"), "{}", path.text());
    }

    #[test]
    fn the_longer_of_two_ways_counts() {
        let code = "0 <f>:\n 1:\tje     4 <f+4>\n 2:\tnop\n 3:\tret\n 4:\tnop\n 5:\tnop\n 6:\tret\n\n";
        assert_eq!(hot_path(code, "f").map(|path| path.len(false)), Some(4));
    }
}
