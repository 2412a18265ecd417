//! A function on a stack.

/// A function on a stack, as the source code has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Frame {
    /// Its name; the module and the offset in it, or the address, if there is none.
    pub(crate) function: String,
    /// The source file, if it is known.
    pub(crate) file: Option<String>,
    /// The line in it, or 0.
    pub(crate) line: u32,
    /// Path of the module, or nothing.
    pub(crate) module: String,
}
