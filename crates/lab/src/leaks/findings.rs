//! Verdicts in groups: blocks with one verdict and one stack, or, where no stack is known, of one size.

use crate::heap_profile::named::Stack;
use crate::heap_profile::table;
use crate::leaks::heap::Heap;
use crate::leaks::suppressions::Suppressions;
use crate::leaks::verdict::Verdict;
use crate::show::quantity;
use crate::symbols::frame::Frame;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Addresses of a group that are shown.
const SHOWN_ADDRESSES: usize = 3;

/// Blocks with one verdict and one stack, or one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// What became of them.
    pub(crate) verdict: Verdict,
    /// Where they were allocated, outermost first; empty if that is not known.
    pub(crate) stack: Stack,
    /// How many there are.
    pub(crate) blocks: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// The first of their addresses.
    pub(crate) addresses: Vec<u64>,
}

/// What became of the live blocks of a process.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    /// The process.
    pub(crate) pid: i32,
    /// The groups: the lost ones first, and of each verdict those with most bytes.
    pub(crate) groups: Vec<Group>,
    /// Lost groups that are suppressed.
    pub(crate) suppressed: Vec<Group>,
}

/// Blocks and bytes.
type Sum = (u64, u64);

impl Findings {
    /// Groups the verdicts of each heap. A block that has none is reachable. `stack_of` knows the stacks of some blocks, by their addresses.
    pub(super) fn new(
        pid: i32,
        heaps: &[Heap],
        verdicts: &[BTreeMap<u64, Verdict>],
        mut stack_of: impl FnMut(u64) -> Stack,
    ) -> Self {
        let mut groups = BTreeMap::<(Verdict, Stack, u64), Group>::new();
        for (heap, verdicts) in heaps.iter().zip(verdicts) {
            for block in heap.live_blocks() {
                let verdict = verdicts.get(&block).copied().unwrap_or(Verdict::StillReachable);
                let (address, bytes) = heap.place_of(block);
                let stack = stack_of(address);
                let size = if stack.is_empty() { bytes } else { 0 };
                let group = groups.entry((verdict, stack, size)).or_insert_with_key(|(verdict, stack, _)| Group {
                    verdict: *verdict,
                    stack: stack.clone(),
                    blocks: 0,
                    bytes: 0,
                    addresses: Vec::new(),
                });
                group.blocks += 1;
                group.bytes += bytes;
                if group.addresses.len() < SHOWN_ADDRESSES {
                    group.addresses.push(address);
                }
            }
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by_key(|group| (group.verdict, u64::MAX - group.bytes));
        Self { pid, groups, suppressed: Vec::new() }
    }

    /// Takes the lost groups out that are known.
    pub(crate) fn suppress(&mut self, known: &Suppressions) {
        let is_known = |group: &Group| group.verdict != Verdict::StillReachable && known.apply_to(&group.stack);
        let (suppressed, rest) = self.groups.drain(..).partition(is_known);
        (self.suppressed, self.groups) = (suppressed, rest);
    }

    /// Blocks and bytes with a verdict.
    pub(crate) fn sum(&self, verdict: Verdict) -> Sum {
        sum(self.groups.iter().filter(|group| group.verdict == verdict))
    }

    /// Lost blocks of which no stack is known.
    pub(crate) fn lost_without_stack(&self) -> u64 {
        let is_lost = |group: &&Group| group.verdict != Verdict::StillReachable && group.stack.is_empty();
        self.groups.iter().filter(is_lost).map(|group| group.blocks).sum()
    }

    /// Whether any block is definitely lost, of those that are not suppressed.
    pub(crate) fn has_leaks(&self) -> bool {
        self.sum(Verdict::DefinitelyLost).0 > 0
    }

    /// The findings as text: the groups of lost blocks, and with `all` those of reachable ones; then the sums.
    pub(crate) fn to_text(&self, all: bool) -> String {
        let mut text = String::new();
        for group in self.groups.iter().filter(|group| all || group.verdict != Verdict::StillReachable) {
            text.push_str(&group.to_text());
        }
        for verdict in [Verdict::DefinitelyLost, Verdict::IndirectlyLost, Verdict::StillReachable] {
            text.push_str(&format!("  {:16} {}\n", name(verdict), amount(self.sum(verdict))));
        }
        if !self.suppressed.is_empty() {
            text.push_str(&format!("  {:16} {}\n", "suppressed", amount(sum(self.suppressed.iter()))));
        }
        text
    }

    /// The findings as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let sums = |verdict| {
            let (blocks, bytes) = self.sum(verdict);
            json!({"blocks": blocks, "bytes": bytes})
        };
        json!({
            "pid": self.pid,
            "definitely_lost": sums(Verdict::DefinitelyLost),
            "indirectly_lost": sums(Verdict::IndirectlyLost),
            "still_reachable": sums(Verdict::StillReachable),
            "groups": self.groups.iter().map(Group::to_json).collect::<Vec<_>>(),
            "suppressed": self.suppressed.iter().map(Group::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Group {
    fn to_text(&self) -> String {
        let addresses: Vec<String> = self.addresses.iter().map(|address| format!("0x{address:x}")).collect();
        let more = if self.blocks > self.addresses.len() as u64 { ", …" } else { "" };
        let what = format!(
            "{} in {} block{}",
            quantity::bytes(self.bytes as f64),
            quantity::count(self.blocks),
            plural(self.blocks)
        );
        let mut text = format!("{what} {}, at {}{more}\n", name(self.verdict), addresses.join(", "));
        for frame in self.stack.iter().rev() {
            text.push_str(&format!("    {}  {}\n", frame.function, table::place(frame)));
        }
        text.push('\n');
        text
    }

    fn to_json(&self) -> Value {
        let frame = |frame: &Frame| json!({"function": frame.function, "file": frame.file, "line": frame.line, "module": frame.module});
        json!({
            "verdict": self.verdict, "blocks": self.blocks, "bytes": self.bytes, "addresses": self.addresses,
            "stack": self.stack.iter().map(frame).collect::<Vec<_>>(),
        })
    }
}

fn sum<'a>(groups: impl Iterator<Item = &'a Group>) -> Sum {
    groups.fold((0, 0), |(blocks, bytes), group| (blocks + group.blocks, bytes + group.bytes))
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::DefinitelyLost => "definitely lost",
        Verdict::IndirectlyLost => "indirectly lost",
        Verdict::StillReachable => "still reachable",
    }
}

fn amount((blocks, bytes): Sum) -> String {
    format!("{} in {} block{}", quantity::bytes(bytes as f64), quantity::count(blocks), plural(blocks))
}

fn plural(number: u64) -> &'static str {
    if number == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(verdict: Verdict, function: &str, blocks: u64, bytes: u64) -> Group {
        let frame = Frame { function: function.into(), ..Frame::default() };
        Group { verdict, stack: vec![frame], blocks, bytes, addresses: vec![0x1000] }
    }

    #[test]
    fn sums_are_by_verdict_and_what_is_suppressed_is_no_leak() {
        let groups = vec![
            group(Verdict::DefinitelyLost, "known", 1, 64),
            group(Verdict::IndirectlyLost, "other", 2, 32),
            group(Verdict::StillReachable, "known", 3, 48),
        ];
        let mut findings = Findings { pid: 7, groups, suppressed: Vec::new() };
        assert!(findings.has_leaks());
        assert_eq!(findings.sum(Verdict::IndirectlyLost), (2, 32));
        let file = crate::scratch_file::ScratchFile::new("known-leaks").unwrap();
        std::fs::write(file.path(), "leak:known\n").unwrap();
        findings.suppress(&Suppressions::read(file.path()).unwrap());
        assert!(!findings.has_leaks());
        // Reachable blocks are no leaks, and stay as they are.
        assert_eq!((findings.suppressed.len(), findings.sum(Verdict::StillReachable)), (1, (3, 48)));
        let text = findings.to_text(false);
        assert!(text.contains("suppressed       64.0 B in 1 block") && text.contains("other"), "{text}");
        assert!(!text.contains("    known") && findings.to_text(true).contains("    known"), "{text}");
        assert_eq!(findings.to_json()["indirectly_lost"]["bytes"], 32);
    }
}
