//! Stacks: which functions a thread is in.
//!
//! ```text
//!  registers ─▶ rule of the code address ─▶ the caller's registers ─▶ …
//!               ├ from the cache
//!               ├ from the object's call frame information (`.eh_frame`)
//!               └ none: by the frame pointer
//! ```
//!
//! Call frame information, because release programs have it and seldom have frame pointers, and neither have this library's hot paths. It is read in
//! place and interpreted without a heap; what was found is kept in a cache of rules, without which recording a stack takes as long as thousands
//! of allocations. Code without such information is left by its frame pointer; where it has none either, the stack ends, or its next entry is
//! wrong. No memory is read of which the kernel has not said that it can be (`readable`): a damaged stack ends early.
//!
//! Cost: some tens of instructions a frame once the cache has its rule, and a system call for each OS page of the stack. No lock, no allocation; may be
//! called in a signal handler.

use crate::module;
use crate::readable::Reader;
use rule::RuleWord;
use rule_cache::RULES;

mod call_frame;
mod registers;
mod rule;
mod rule_cache;

pub use registers::Registers;

/// The most frames that are recorded unless the type says otherwise.
pub const FRAMES_MOST: usize = 16;

/// Code addresses of up to `N` frames, the innermost first. Each but that of a fault is in the call that the frame is in, not behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack<const N: usize = FRAMES_MOST> {
    addresses: [usize; N],
    len: usize,
}

impl<const N: usize> Stack<N> {
    /// No frame.
    pub const EMPTY: Self = Self { addresses: [0; N], len: 0 };

    /// The calling thread's stack.
    ///
    /// ```
    /// use freestone_os::stack::Stack;
    ///
    /// let stack: Stack = Stack::here();
    /// assert!(!stack.addresses().is_empty());
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn here() -> Self {
        match Registers::here() {
            Some(registers) => Self::at(registers),
            None => Self::EMPTY,
        }
    }

    /// The stack of a thread that was interrupted with these registers. It is the calling thread's, in a signal handler.
    #[inline(never)]
    #[must_use]
    pub fn at(registers: Registers) -> Self {
        let (mut stack, mut at, mut reader) = (Self::EMPTY, registers, Reader::new());
        let mut code = at.code;
        for (n, place) in (1..).zip(&mut stack.addresses) {
            *place = code;
            stack.len = n;
            let Some(caller) = caller_of(&at, code, &mut reader) else { break };
            // A stack grows downwards: whoever called is above. Only the innermost function may have no frame.
            if caller.stack < at.stack + usize::from(n > 1) || caller.code < 2 {
                break;
            }
            // The address in the call, not behind it.
            (code, at) = (caller.code - 1, caller);
        }
        stack
    }

    /// A stack of these addresses, as many as fit.
    #[must_use]
    pub fn of(addresses: impl Iterator<Item = usize>) -> Self {
        let mut stack = Self::EMPTY;
        for (place, address) in stack.addresses.iter_mut().zip(addresses) {
            *place = address;
            stack.len += 1;
        }
        stack
    }

    /// The addresses.
    #[must_use]
    pub fn addresses(&self) -> &[usize] {
        self.addresses.get(..self.len).unwrap_or_default()
    }
}

/// The registers of the caller of the function that `code` is in; `None` at the stack's end.
#[inline(always)]
fn caller_of(at: &Registers, code: usize, reader: &mut Reader) -> Option<Registers> {
    let rule = match RULES.get(code) {
        Some(known) => known,
        None => find_rule(code),
    };
    if rule == RuleWord::NONE { by_frame_pointer(at, reader) } else { rule.caller(at, reader) }
}

#[cold]
fn find_rule(code: usize) -> RuleWord {
    if code == 0 {
        return RuleWord::NONE;
    }
    let found = module::find(code).and_then(|module| call_frame::rule(module.frame_info, code));
    RULES.put(code, RuleWord::new(found));
    RuleWord::new(found)
}

#[cold]
fn by_frame_pointer(at: &Registers, reader: &mut Reader) -> Option<Registers> {
    if at.frame < at.stack {
        return None;
    }
    let (next, code) = (reader.word(at.frame)?, reader.word(at.frame.checked_add(size_of::<usize>())?)?);
    let stack = at.frame.checked_add(2 * size_of::<usize>())?;
    module::find(registers::plain(code))?;
    Some(Registers { code: registers::plain(code), stack, frame: next, link: 0 })
}

#[cfg(test)]
mod tests;
