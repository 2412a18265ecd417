//! Stacks: which functions a thread is in.
//!
//! ```text
//!  registers ─▶ rule of the code address ─▶ the caller's registers ─▶ …
//!               ├ from the cache, if its object is never unloaded, or what the rule was found from is there still
//!               ├ from the object's call frame information (`.eh_frame`)
//!               └ none: by the frame pointer
//! ```
//!
//! Call frame information, because release programs have it and seldom have frame pointers, and neither have this library's hot paths. It is read in
//! place and interpreted without a heap; what was found is kept in a cache of rules, without which recording a stack takes as long as thousands of allocations. Objects
//! other than the program, this library and the C library may be unloaded, and others loaded where they were: their rules are compared with what they were found from. Code without such information is left by its frame pointer; where it has none either, the stack ends, or its next entry is
//! wrong. No memory is read of which the kernel has not said that it can be (`readable`): a damaged stack ends early.
//!
//! Cost: some tens of instructions a frame once the cache has its rule; and a system call for each OS page of the stack, unless the thread knows its own
//! ([`OwnStack`]). No lock, no allocation; may be called in a signal handler.

use crate::module;
use crate::readable::Reader;
use known_stacks::{KNOWN, NewStack};
use rule::RuleWord;
use rule_cache::{Kept, RULES};

mod call_frame;
mod hash;
mod known_stacks;
#[cfg(door = "linux")]
mod own_stack;
mod registers;
mod rule;
mod rule_cache;

#[cfg(not(door = "linux"))]
pub use crate::absent::own_stack::OwnStack;
pub use hash::hash_of;
#[cfg(door = "linux")]
pub use own_stack::OwnStack;
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

    /// The calling thread's stack, in place of what this one was. `own` is what the thread knows of it. Returns the hash of its addresses ([`hash_of`]) if
    /// that is known.
    #[inline(always)]
    pub fn take_here(&mut self, own: &OwnStack) -> Option<u64> {
        self.take_own(Registers::here()?, own)
    }

    /// As [`Stack::take_here`], of the function that had these registers, which has not returned.
    pub fn take_own(&mut self, at: Registers, own: &OwnStack) -> Option<u64> {
        let (len, hash) = take_own(at, own, &mut self.addresses);
        self.len = len;
        hash
    }

    /// The hash ([`hash_of`]) of the stack of the calling thread's function that has these registers, if that is known. `own` is what the thread knows of its
    /// stack.
    #[must_use]
    pub fn known_hash(at: &Registers, own: &OwnStack) -> Option<u64> {
        KNOWN.get(at, own.words(at.stack), N, &mut []).map(|(_, hash)| hash)
    }

    /// The stack of a thread that was interrupted with these registers. It is the calling thread's, in a signal handler.
    #[inline(never)]
    #[must_use]
    pub fn at(registers: Registers) -> Self {
        let mut stack = Self::EMPTY;
        stack.len = unwind(registers, &mut Reader::new(), &mut stack.addresses, None);
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

/// Writes the code addresses of the calling thread's stack, as many as there are places. Returns how many, and their hash if that is known.
#[inline(never)]
fn take_own(at: Registers, own: &OwnStack, places: &mut [usize]) -> (usize, Option<u64>) {
    if let Some((n, hash)) = KNOWN.get(&at, own.words(at.stack), places.len(), places) {
        return (n, Some(hash));
    }
    let mut reader = own.reader(at.stack);
    let mut new = if reader.knows_some() { KNOWN.begin(&at) } else { None };
    let n = unwind(at, &mut reader, places, new.as_mut());
    if let Some(new) = new {
        new.finish(places.get(..n).unwrap_or_default(), places.len());
    }
    (n, None)
}

/// Writes the code addresses of a stack, as many as there are places. Returns how many. `new` learns what they depend on.
#[inline(never)]
fn unwind(mut at: Registers, reader: &mut Reader, places: &mut [usize], mut new: Option<&mut NewStack<'_>>) -> usize {
    let (mut code, mut n) = (at.code, 0);
    for place in places {
        *place = code;
        let kept = RULES.get(code).filter(|kept| kept.is_for_good() || holds_still(code, kept));
        let (mut rule, is_kept) = kept.map_or_else(|| find_rule(code), |kept| (kept.rule, kept.is_for_good()));
        let is_guess = rule == RuleWord::NONE;
        if is_guess {
            rule = RuleWord::BY_FRAME_POINTER;
        }
        n += 1;
        let caller = if is_guess && at.frame < at.stack { None } else { rule.caller(&at, reader) };
        if let Some(new) = &mut new {
            match caller {
                Some(caller) if is_kept && !is_guess => new.note(rule, &at, &caller),
                None if is_kept && rule.is_outermost() => {}
                _ => new.give_up(),
            }
        }
        let Some(caller) = caller else { return n };
        // A stack grows downwards: whoever called is above. Only the innermost function may have no frame.
        let is_above = caller.stack >= at.stack + usize::from(n > 1) && caller.code >= 2;
        if !is_above || (is_guess && module::find(caller.code).is_none()) {
            return n;
        }
        // The address in the call, not behind it.
        (code, at) = (caller.code - 1, caller);
    }
    n
}

/// Whether a rule holds still that was found in an object that can be unloaded: the object that is there now says the same.
#[cold]
fn holds_still(code: usize, kept: &Kept) -> bool {
    let found = module::find(code).and_then(|module| call_frame::digest(module.frame_info, kept.row, code));
    found == Some(kept.digest)
}

/// The rule of a code address that the cache does not know, and whether it holds for good: if the object stays. One that can be unloaded may make room for
/// another, whose rules are others.
#[cold]
fn find_rule(code: usize) -> (RuleWord, bool) {
    let module = module::find(code);
    let info = module.map_or(0, |module| module.frame_info);
    let found = call_frame::find(info, code);
    let rule = RuleWord::new(found.map(|found| found.rule));
    let stays = code != 0 && module::stays(module);
    if stays {
        RULES.put(code, Kept::for_good(rule));
    } else if let Some(row) = found.map(|found| found.row) {
        if let Some(digest) = call_frame::digest(info, row, code) {
            RULES.put(code, Kept { rule, row, digest });
        }
    }
    (rule, stays)
}

#[cfg(test)]
mod tests;
