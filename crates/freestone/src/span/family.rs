//! Families of functions: what one of them allocates, another of the same family frees.

/// Which functions allocate and free a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// C's, and an explicit heap's.
    C = 2,
    /// Rust's global allocator.
    Rust = 3,
    /// C++'s `operator new` and `operator delete`.
    New = 4,
    /// C++'s `operator new[]` and `operator delete[]`.
    NewArray = 5,
}

impl Family {
    /// The family that trailers have as this number.
    #[inline(always)]
    pub(crate) fn of(number: u32) -> Option<Self> {
        match number {
            2 => Some(Self::C),
            3 => Some(Self::Rust),
            4 => Some(Self::New),
            5 => Some(Self::NewArray),
            _ => None,
        }
    }
}
