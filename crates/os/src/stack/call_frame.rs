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

/// A rule, and the row of the table that led to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) rule: Rule,
    pub(super) row: usize,
}

/// The rule at `code`, from an object's `.eh_frame_hdr` at `info`.
pub(super) fn find(info: usize, code: usize) -> Option<Found> {
    let mut cursor = Cursor::new(info);
    let row = find_row(&mut cursor, info, code)?;
    let row_at = entry_of(&mut cursor, info, row);
    let at = cursor.entry(row_at);
    let mut machine = Machine::new(at.common);
    cursor.seek(at.common.instructions);
    machine.run(&mut cursor, at.common.end, usize::MAX);
    machine.begin(at.start);
    cursor.seek(at.instructions);
    machine.run(&mut cursor, at.end, code);
    let is_found = !cursor.has_failed() && code < at.start.checked_add(at.bytes)?;
    machine.rule().filter(|_| is_found).map(|rule| Found { rule, row })
}

/// A number of all that the rule at `code` is found from, if the row is that which [`find`] finds: where the header is, how many rows it has, the row, and the
/// bytes of the entry and of its common part. `None` if the row is another's, or the entry is longer than compilers make them. Not 0.
///
/// So a rule holds still where this number is what it was, whichever object is there.
pub(super) fn digest(info: usize, row: usize, code: usize) -> Option<u64> {
    let mut cursor = Cursor::new(info);
    let n = n_rows(&mut cursor, info)?;
    let (start, entry) = entry_of(&mut cursor, info, row);
    let is_row = row < n && start <= code && (row + 1 == n || entry_of(&mut cursor, info, row + 1).0 > code);
    let mut digest = mixed(mixed(info as u64 ^ (n as u64) << 32, start as u64), entry as u64);
    cursor.seek(entry);
    cursor.skip(4);
    let common = cursor.at().wrapping_sub(cursor.u32() as usize);
    for at in [entry, common] {
        cursor.seek(at);
        let length = cursor.u32();
        if length > LONGEST {
            return None;
        }
        digest = mixed(digest, length.into());
        for _ in 0..length.div_ceil(8) {
            digest = mixed(digest, cursor.u64());
        }
    }
    (is_row && !cursor.has_failed()).then_some(digest | 1)
}

/// The longest entry of which a digest is made.
const LONGEST: u32 = 256;

fn mixed(sum: u64, number: u64) -> u64 {
    let sum = (sum ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    sum ^ sum >> 29
}

const ROW_BYTES: usize = 8;

/// The rows of a table, if its form is known.
fn n_rows(cursor: &mut Cursor, info: usize) -> Option<usize> {
    /// Version 1; a relative address, a 4-byte count, a table relative to the header: what every linker makes.
    const FORM: u32 = u32::from_ne_bytes([1, 0x1b, 0x03, 0x3b]);
    cursor.seek(info);
    if info == 0 || cursor.u32() != FORM {
        return None;
    }
    cursor.skip(4);
    Some(cursor.u32() as usize)
}

/// The row of the last function that starts at or before `code`.
fn find_row(cursor: &mut Cursor, info: usize, code: usize) -> Option<usize> {
    let (mut from, mut to) = (0, n_rows(cursor, info)?);
    while from < to {
        let middle = from + (to - from) / 2;
        if entry_of(cursor, info, middle).0 <= code {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from.checked_sub(1)
}

/// The start of a row's function, and its entry's address.
fn entry_of(cursor: &mut Cursor, info: usize, row: usize) -> (usize, usize) {
    cursor.seek(info + 12 + row * ROW_BYTES);
    let [start, entry] = [cursor.i32(), cursor.i32()].map(|far| info.wrapping_add_signed(far as isize));
    (start, entry)
}

#[cfg(test)]
mod tests;
