//! An access that faulted, and what becomes of it.

use crate::stack::Registers;

/// An access that faulted.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Where.
    pub address: usize,
    /// Whether it was a write, if that is known.
    pub is_write: Option<bool>,
    /// The registers of the thread, if they are known.
    pub registers: Option<Registers>,
}

/// What becomes of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The access is made again, and succeeds now.
    Resume,
    /// The process ends; a handler of the program is called before.
    Fatal,
    /// It is no concern of the allocator's.
    Foreign,
}

/// Decides about a fault, in the signal handler of the thread that faulted.
pub type Hook = fn(&Fault) -> Outcome;
