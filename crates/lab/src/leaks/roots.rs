//! Where the search for live blocks begins: registers, stacks, globals, thread-local storage, and all other memory that the program can write
//! to, except the heap itself.
//!
//! ```text
//!  a thread's stack   ░░░░░░░░░░░░░░░░▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓     ▓ searched
//!                     unused          ▲ red zone, stack pointer   ▲ static thread-local storage, control block
//!  a former stack     ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░▓▓▓▓
//!                     left by a thread that has ended     ▲ control block: the C library's, which uses it again
//! ```
//!
//! Memory that the program maps itself is searched as well: Python keeps its own objects there, and they refer to blocks.

use crate::leaks::stopped::{FormerStack, StoppedProcess, StoppedThread};
use crate::symbols::mapping::Mapping;

/// Bytes below the stack pointer that a function may use without moving it.
const RED_ZONE_BYTES: u64 = 128;

/// What refers to blocks from outside the heap.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Roots {
    /// Ranges of memory.
    pub(super) ranges: Vec<(u64, u64)>,
    /// Contents of registers.
    pub(super) words: Vec<u64>,
}

/// The roots of a process. What is `excluded` is none: the heaps, and tables of the library with the addresses of blocks.
pub(super) fn find(process: &StoppedProcess, mappings: &[Mapping], excluded: &[(u64, u64)]) -> Roots {
    let writable = mappings.iter().filter(|mapping| mapping.is_writable());
    let ranges = writable.filter_map(|mapping| searched(mapping, &process.threads, &process.former_stacks));
    let words = process.threads.iter().flat_map(|thread| thread.registers.iter().copied()).collect();
    Roots { ranges: ranges.flat_map(|range| without(range, excluded)).collect(), words }
}

/// What is left of a range without others.
fn without(range: (u64, u64), excluded: &[(u64, u64)]) -> Vec<(u64, u64)> {
    excluded.iter().fold(vec![range], |left, &(start, end)| {
        let parts = left.into_iter().flat_map(|(from, to)| [(from, to.min(start)), (from.max(end), to)]);
        parts.filter(|(from, to)| from < to).collect()
    })
}

/// The part of a mapping that is searched.
fn searched(mapping: &Mapping, threads: &[StoppedThread], former: &[FormerStack]) -> Option<(u64, u64)> {
    let has = |address: u64| (mapping.start..mapping.end).contains(&address);
    let lowest = threads.iter().map(|thread| thread.stack_pointer).filter(|&pointer| has(pointer)).min();
    if let Some(pointer) = lowest {
        let from = pointer.saturating_sub(RED_ZONE_BYTES).max(mapping.start) & !7;
        return Some((from, mapping.end));
    }
    match former.iter().find(|former| former.range == (mapping.start, mapping.end)) {
        // A control block elsewhere: the thread had a stack of the program's own.
        Some(stack) if has(stack.thread_pointer) => Some((stack.thread_pointer & !7, mapping.end)),
        Some(_) => None,
        None => Some((mapping.start, mapping.end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64) -> Mapping {
        Mapping { start, end, rights: "rw-p".into(), ..Mapping::default() }
    }

    fn thread(stack_pointer: u64) -> StoppedThread {
        StoppedThread { number: 1, registers: vec![7], stack_pointer, thread_pointer: 0, system_call: 0 }
    }

    #[test]
    fn a_stack_is_searched_from_its_red_zone_on_and_other_memory_as_a_whole() {
        let stack = mapping(0x1000, 0x9000);
        assert_eq!(searched(&stack, &[thread(0x5000)], &[]), Some((0x5000 - 128, 0x9000)));
        assert_eq!(searched(&stack, &[thread(0x5000), thread(0x3000)], &[]), Some((0x3000 - 128, 0x9000)));
        assert_eq!(searched(&stack, &[thread(0x1008)], &[]), Some((0x1000, 0x9000)));
        assert_eq!(searched(&stack, &[thread(0x9000)], &[]), Some((0x1000, 0x9000)));
    }

    #[test]
    fn excluded_ranges_are_cut_out() {
        assert_eq!(without((10, 90), &[(30, 40), (60, 70)]), [(10, 30), (40, 60), (70, 90)]);
        assert_eq!(without((10, 90), &[(0, 20), (80, 99), (0, 0)]), [(20, 80)]);
        assert!(without((10, 90), &[(10, 90)]).is_empty());
        assert_eq!(without((10, 90), &[(90, 99), (1, 10)]), [(10, 90)]);
    }

    #[test]
    fn of_a_former_stack_only_the_control_block_is_searched() {
        let former = |thread_pointer| FormerStack { range: (0x1000, 0x9000), thread_pointer };
        assert_eq!(searched(&mapping(0x1000, 0x9000), &[], &[former(0x8700)]), Some((0x8700, 0x9000)));
        assert_eq!(searched(&mapping(0x1000, 0x9000), &[], &[former(0xf000)]), None);
        // What is mapped there now is something else, or the stack has a thread again.
        assert_eq!(searched(&mapping(0x1000, 0x8000), &[], &[former(0x7000)]), Some((0x1000, 0x8000)));
        assert_eq!(
            searched(&mapping(0x1000, 0x9000), &[thread(0x8000)], &[former(0x8700)]),
            Some((0x8000 - 128, 0x9000))
        );
    }
}
