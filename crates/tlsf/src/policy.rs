//! What a heap may be told at compile time: how far the last resort goes, and whether blocks carry overrun footers.
//!
//! A policy is a type without a value, so both arms of every choice always compile and none of them costs a branch.

/// The compile-time choices of a [`crate::Tlsf`].
pub trait Policy {
    /// How many blocks of the request's own list `allocate` looks at before it refuses.
    ///
    /// The ordinary search takes any block of a list in which every block fits, and never looks at a second one. When there is no
    /// such list, and the free end of the first region is too small, a block that fits may still be in the list the request itself
    /// falls into, for that list holds a range of sizes. `u32::MAX` looks at all of them, so that a request for exactly the largest
    /// free block always succeeds; a small number makes the bound absolute, also for the one call that would otherwise be refused.
    const WALK_MAX: u32;

    /// Whether each block ends in a footer that `deallocate` and `check` compare, so that even an overrun of one byte
    /// into the block's own slack is found. Costs 8 bytes a block.
    const FOOTER: bool;
}

/// The whole list is looked at as a last resort; no footers.
#[derive(Debug)]
pub struct Standard;

/// As [`Standard`], with a footer after each block.
#[derive(Debug)]
pub struct Guarded;

/// At most four blocks are looked at as a last resort: the bound of `allocate` holds for refused requests too. A request that
/// only one of many near-equal blocks could serve may be refused.
#[derive(Debug)]
pub struct Bounded;

impl Policy for Standard {
    const WALK_MAX: u32 = u32::MAX;
    const FOOTER: bool = false;
}

impl Policy for Guarded {
    const WALK_MAX: u32 = u32::MAX;
    const FOOTER: bool = true;
}

impl Policy for Bounded {
    const WALK_MAX: u32 = 4;
    const FOOTER: bool = false;
}
