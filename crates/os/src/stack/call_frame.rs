//! Call frame information: how to get from a function's registers to its caller's, for each instruction.
//!
//! ```text
//!  .eh_frame_hdr   sorted: start of a function ─▶ its entry      found by bisection
//!  .eh_frame       entry (FDE) ─▶ common part (CIE)              instructions of a small machine, run up to the code address
//! ```
//!
//! Read as the Linux Standard Base describes it. What compilers make is supported, for the registers that a stack needs: frames found from the stack or
//! the frame pointer, and words saved at a distance from there. For anything else there is no rule.

use super::rule::Rule;
use cursor::Cursor;
use machine::Machine;

mod cursor;
mod machine;

/// The rule at `code`, from an object's `.eh_frame_hdr` at `info`.
pub(super) fn rule(info: usize, code: usize) -> Option<Rule> {
    let mut cursor = Cursor::new(info);
    let entry = find_entry(&mut cursor, info, code)?;
    let at = cursor.entry(entry);
    let mut machine = Machine::new(at.common);
    cursor.seek(at.common.instructions);
    machine.run(&mut cursor, at.common.end, usize::MAX);
    machine.begin(at.start);
    cursor.seek(at.instructions);
    machine.run(&mut cursor, at.end, code);
    if cursor.has_failed() || code >= at.start.checked_add(at.bytes)? { None } else { machine.rule() }
}

/// The start and the entry's address of the last function that starts at or before `code`.
fn find_entry(cursor: &mut Cursor, info: usize, code: usize) -> Option<(usize, usize)> {
    /// Version 1; a relative address, a 4-byte count, a table relative to the header: what every linker makes.
    const FORM: u32 = u32::from_ne_bytes([1, 0x1b, 0x03, 0x3b]);
    const ROW_BYTES: usize = 8;
    if info == 0 || cursor.u32() != FORM {
        return None;
    }
    cursor.skip(4);
    let n = cursor.u32() as usize;
    let table = info + 12;
    let (mut from, mut to) = (0, n);
    while from < to {
        let middle = from + (to - from) / 2;
        cursor.seek(table + middle * ROW_BYTES);
        if info.wrapping_add_signed(cursor.i32() as isize) <= code {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    cursor.seek(table + from.checked_sub(1)? * ROW_BYTES);
    let [start, entry] = [cursor.i32(), cursor.i32()].map(|far| info.wrapping_add_signed(far as isize));
    Some((start, entry))
}

#[cfg(test)]
mod tests;
