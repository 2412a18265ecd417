//! The machine that call frame information is a program for: its state is a rule, and each instruction changes the rule or advances the code
//! address that the rule holds for.

use super::cursor::{Common, Cursor};
use crate::stack::rule::{Base, OFFSET_BITS, Rule, Saved};

/// Numbers of the registers: frame pointer, stack pointer, return address.
#[cfg(not(any(target_arch = "aarch64", target_arch = "riscv64")))]
mod number {
    pub(super) const FRAME: u64 = 6;
    pub(super) const STACK: u64 = 7;
    pub(super) const RETURN: u64 = 16;
}
/// Numbers of the registers: frame pointer, stack pointer, return address.
#[cfg(target_arch = "aarch64")]
mod number {
    pub(super) const FRAME: u64 = 29;
    pub(super) const STACK: u64 = 31;
    pub(super) const RETURN: u64 = 30;
}
/// Numbers of the registers: frame pointer, stack pointer, return address.
#[cfg(target_arch = "riscv64")]
mod number {
    pub(super) const FRAME: u64 = 8;
    pub(super) const STACK: u64 = 2;
    pub(super) const RETURN: u64 = 1;
}

/// How deep states are remembered.
const REMEMBERED_MOST: usize = 8;

#[derive(Clone, Copy)]
struct State {
    /// The register that the frame's address is found from; `None` if by an expression.
    base: Option<u64>,
    offset: u64,
    return_address: Saved,
    frame_pointer: Saved,
}

/// See the module header.
pub(super) struct Machine {
    common: Common,
    code: usize,
    now: State,
    initial: State,
    remembered: [State; REMEMBERED_MOST],
    n_remembered: usize,
}

impl Machine {
    pub(super) fn new(common: Common) -> Self {
        let now = State { base: None, offset: 0, return_address: Saved::Same, frame_pointer: Saved::Same };
        Self { common, code: 0, now, initial: now, remembered: [now; REMEMBERED_MOST], n_remembered: 0 }
    }

    /// Begins a function at `start`: what was run so far is common to many.
    pub(super) fn begin(&mut self, start: usize) {
        self.code = start;
        self.initial = self.now;
    }

    /// The rule of the state, if it can be written as one.
    pub(super) fn rule(&self) -> Option<Rule> {
        let base = match self.now.base? {
            number::STACK => Base::Stack,
            number::FRAME => Base::Frame,
            _ => return None,
        };
        let offset = u32::try_from(self.now.offset).ok().filter(|&offset| offset >> OFFSET_BITS == 0)?;
        let State { return_address, frame_pointer, .. } = self.now;
        Some(Rule { base, offset, return_address, frame_pointer })
    }

    /// Runs the instructions from the cursor's place to `end`, or to the first that is for code behind `code`. The cursor fails at what is not
    /// supported.
    #[inline(never)]
    pub(super) fn run(&mut self, cursor: &mut Cursor, end: usize, code: usize) {
        while cursor.at() < end && !cursor.has_failed() && self.code <= code {
            let byte = cursor.u8();
            let (kind, low) = (byte >> 6, u64::from(byte & 0x3f));
            match (kind, low) {
                (1, steps) => self.advance(steps, cursor),
                (2, register) => {
                    let distance = cursor.uleb() as i64;
                    self.save(register, distance, cursor);
                }
                (3, register) => self.restore(register),
                (_, operation) => self.step(operation as u8, cursor),
            }
        }
    }

    fn advance(&mut self, steps: u64, cursor: &mut Cursor) {
        match steps.checked_mul(self.common.code_align).and_then(|bytes| self.code.checked_add(bytes as usize)) {
            Some(code) => self.code = code,
            None => cursor.fail(),
        }
    }

    /// Runs an instruction whose operands follow.
    fn step(&mut self, operation: u8, cursor: &mut Cursor) {
        match operation {
            // Nothing; AArch64's signed return addresses.
            0x00 | 0x2d => {}
            // Code goes on by one, two or four bytes of steps.
            0x02..=0x04 => {
                let steps = match operation {
                    0x02 => cursor.u8().into(),
                    0x03 => cursor.u16().into(),
                    _ => cursor.u32().into(),
                };
                self.advance(steps, cursor);
            }
            // A register saved at a distance, unsigned or signed.
            0x05 | 0x11 => {
                let register = cursor.uleb();
                let distance = if operation == 0x05 { cursor.uleb() as i64 } else { cursor.sleb() };
                self.save(register, distance, cursor);
            }
            0x06 => {
                let register = cursor.uleb();
                self.restore(register);
            }
            // The same; undefined.
            0x08 => self.set(cursor.uleb(), Saved::Same),
            0x07 => self.set(cursor.uleb(), Saved::Lost),
            // In another register, or as a value, signed or not: bytes of both are skipped alike.
            0x09 | 0x14 | 0x15 => {
                self.set(cursor.uleb(), Saved::Lost);
                cursor.uleb();
            }
            // By an expression.
            0x10 | 0x16 => {
                self.set(cursor.uleb(), Saved::Lost);
                let bytes = cursor.uleb();
                cursor.skip(bytes);
            }
            0x0a => self.remember(cursor),
            0x0b => self.recall(cursor),
            // The frame's address: register and offset, either, by an expression.
            0x0c => (self.now.base, self.now.offset) = (Some(cursor.uleb()), cursor.uleb()),
            0x0d => self.now.base = Some(cursor.uleb()),
            0x0e => self.now.offset = cursor.uleb(),
            0x0f => {
                self.now.base = None;
                let bytes = cursor.uleb();
                cursor.skip(bytes);
            }
            // Bytes of arguments on the stack.
            0x2e => _ = cursor.uleb(),
            _ => cursor.fail(),
        }
    }

    fn remember(&mut self, cursor: &mut Cursor) {
        match self.remembered.get_mut(self.n_remembered) {
            Some(place) => *place = self.now,
            None => cursor.fail(),
        }
        self.n_remembered += 1;
    }

    fn recall(&mut self, cursor: &mut Cursor) {
        self.n_remembered = self.n_remembered.wrapping_sub(1);
        match self.remembered.get(self.n_remembered) {
            Some(&state) => self.now = state,
            None => cursor.fail(),
        }
    }

    fn save(&mut self, register: u64, distance: i64, cursor: &mut Cursor) {
        if register != number::RETURN && register != number::FRAME {
            return;
        }
        match distance.checked_mul(self.common.data_align).and_then(|distance| i16::try_from(distance).ok()) {
            Some(distance) => self.set(register, Saved::At(distance)),
            None => cursor.fail(),
        }
    }

    fn restore(&mut self, register: u64) {
        match register {
            number::RETURN => self.now.return_address = self.initial.return_address,
            number::FRAME => self.now.frame_pointer = self.initial.frame_pointer,
            _ => {}
        }
    }

    fn set(&mut self, register: u64, saved: Saved) {
        match register {
            number::RETURN => self.now.return_address = saved,
            number::FRAME => self.now.frame_pointer = saved,
            _ => {}
        }
    }
}
