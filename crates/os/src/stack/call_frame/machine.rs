//! The machine that call frame information is a program for: its state is a rule, and each instruction changes the rule or advances the code
//! address that the rule holds for.

use super::cursor::{Common, Cursor};
use crate::stack::rule::{Base, OFFSET_BITS, Rule, Saved};

/// Numbers of the registers: frame pointer, stack pointer, return address.
#[cfg(not(target_arch = "aarch64"))]
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

    /// Runs the instructions from the cursor's place to `end`, or to the first that is for code behind `code`. `None` for what is not supported.
    pub(super) fn run(&mut self, cursor: &mut Cursor, end: usize, code: usize) -> Option<()> {
        while cursor.at() < end {
            let byte = cursor.u8()?;
            let (kind, low) = (byte >> 6, u64::from(byte & 0x3f));
            let steps = match (kind, low) {
                (1, steps) => steps,
                (0, 0x02) => u64::from(cursor.u8()?),
                (0, 0x03) => u64::from(cursor.u16()?),
                (0, 0x04) => u64::from(cursor.u32()?),
                (2, register) => {
                    let distance = cursor.uleb()? as i64;
                    self.save(register, distance)?;
                    continue;
                }
                (3, register) => {
                    self.restore(register);
                    continue;
                }
                (_, operation) => {
                    self.step(operation as u8, cursor)?;
                    continue;
                }
            };
            self.code = self.code.checked_add(usize::try_from(steps.checked_mul(self.common.code_align)?).ok()?)?;
            if self.code > code {
                break;
            }
        }
        Some(())
    }

    /// Runs an instruction that does not advance.
    fn step(&mut self, operation: u8, cursor: &mut Cursor) -> Option<()> {
        match operation {
            // Nothing; AArch64's signed return addresses.
            0x00 | 0x2d => {}
            // A register saved at a distance, unsigned or signed.
            0x05 => {
                let (register, distance) = (cursor.uleb()?, cursor.uleb()? as i64);
                self.save(register, distance)?;
            }
            0x11 => {
                let (register, distance) = (cursor.uleb()?, cursor.sleb()?);
                self.save(register, distance)?;
            }
            0x06 => {
                let register = cursor.uleb()?;
                self.restore(register);
            }
            // Undefined; the same; in another register, as a value, or by an expression.
            0x07 => self.set(cursor.uleb()?, Saved::Lost),
            0x08 => self.set(cursor.uleb()?, Saved::Same),
            0x09 | 0x14 => {
                self.set(cursor.uleb()?, Saved::Lost);
                cursor.uleb()?;
            }
            0x15 => {
                self.set(cursor.uleb()?, Saved::Lost);
                cursor.sleb()?;
            }
            0x10 | 0x16 => {
                self.set(cursor.uleb()?, Saved::Lost);
                let bytes = cursor.uleb()?;
                cursor.skip(usize::try_from(bytes).ok()?)?;
            }
            0x0a => {
                *self.remembered.get_mut(self.n_remembered)? = self.now;
                self.n_remembered += 1;
            }
            0x0b => {
                self.n_remembered = self.n_remembered.checked_sub(1)?;
                self.now = *self.remembered.get(self.n_remembered)?;
            }
            // The frame's address: register and offset, either, by an expression.
            0x0c => (self.now.base, self.now.offset) = (Some(cursor.uleb()?), cursor.uleb()?),
            0x0d => self.now.base = Some(cursor.uleb()?),
            0x0e => self.now.offset = cursor.uleb()?,
            0x0f => {
                self.now.base = None;
                let bytes = cursor.uleb()?;
                cursor.skip(usize::try_from(bytes).ok()?)?;
            }
            // Bytes of arguments on the stack.
            0x2e => {
                cursor.uleb()?;
            }
            _ => return None,
        }
        Some(())
    }

    fn save(&mut self, register: u64, distance: i64) -> Option<()> {
        let distance = distance.checked_mul(self.common.data_align)?;
        if register == number::RETURN || register == number::FRAME {
            self.set(register, Saved::At(i16::try_from(distance).ok()?));
        }
        Some(())
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
