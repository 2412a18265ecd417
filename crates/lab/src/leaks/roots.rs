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

use crate::leaks::heap::Heap;
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

/// The roots of a process.
pub(super) fn find(process: &StoppedProcess, mappings: &[Mapping], heaps: &[Heap]) -> Roots {
    let in_heap = |mapping: &Mapping| {
        heaps.iter().map(Heap::range).any(|(start, end)| mapping.start < end && start < mapping.end)
    };
    let writable = mappings.iter().filter(|mapping| mapping.is_writable() && !in_heap(mapping));
    let range = |mapping| searched(mapping, &process.threads, &process.former_stacks);
    let words = process.threads.iter().flat_map(|thread| thread.registers.iter().copied()).collect();
    Roots { ranges: writable.filter_map(range).collect(), words }
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
