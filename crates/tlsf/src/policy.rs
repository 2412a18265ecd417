//! The compile-time choices of a heap: how far the last resort goes, and whether blocks have overrun footers.
//!
//! A policy is a type without a value. Both branches of every choice always compile, and none costs an instruction.

/// The compile-time choices of a [`Tlsf`](crate::Tlsf): use [`Standard`], [`WithFooters`] or [`Bounded`], or implement it.
///
/// ```
/// use freestone_tlsf::{Policy, Tlsf};
///
/// /// Footers, and at most 16 blocks tried as the last resort.
/// struct Careful;
/// impl Policy for Careful {
///     const WALK_MAX: u32 = 16;
///     const FOOTER: bool = true;
/// }
/// let heap = Tlsf::<Careful>::with_policy();
/// ```
pub trait Policy {
    /// How many blocks of the request's own list `allocate` tries before it refuses.
    ///
    /// The ordinary search takes any block of a list in which every block fits, and never tries a second one. When there is no
    /// such list, and the free end of the first region is too small, a block that fits may still be in the list that the request itself
    /// belongs to, because a list holds a range of sizes. With `u32::MAX` all of its blocks are checked, and a request for exactly the
    /// largest free block always succeeds. A small number bounds the time of refused requests too.
    const WALK_MAX: u32;

    /// Whether each block ends in a footer that `deallocate`, `reallocate` and `check` compare, so that an overrun of a single byte,
    /// even into the block's own slack, is found. Costs 8 bytes per block.
    const FOOTER: bool;
}

/// Looks at the whole list as a last resort; no footers. The default.
///
/// ```
/// use freestone_tlsf::{Policy, Standard, Tlsf};
///
/// let heap: Tlsf<'_, Standard> = Tlsf::new();
/// assert_eq!(heap.region_bytes(), 0);
/// assert!(!Standard::FOOTER);
/// ```
#[derive(Debug)]
pub struct Standard;

/// As [`Standard`], with a footer behind each block, which finds an overrun of one byte.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// use freestone_tlsf::{Error, Tlsf, WithFooters};
///
/// let mut heap = Tlsf::<WithFooters>::with_policy();
/// heap.add_region(&mut memory.0)?;
/// let block = heap.allocate(100, 16)?;
/// // SAFETY: for the example: one byte is written behind the request; the block is freed once.
/// unsafe {
///     block.add(100).write(1);
///     assert!(matches!(heap.deallocate(block), Err(Error::Overrun { .. })));
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct WithFooters;

/// Looks at no more than four blocks as a last resort, so that refused requests have a bound too; no footers. A request that only one of
/// many free blocks of almost the same size could serve may be refused.
///
/// ```
/// let heap = freestone_tlsf::Tlsf::<freestone_tlsf::Bounded>::with_policy();
/// assert_eq!(heap.region_bytes(), 0);
/// ```
#[derive(Debug)]
pub struct Bounded;

impl Policy for Standard {
    const WALK_MAX: u32 = u32::MAX;
    const FOOTER: bool = false;
}

impl Policy for WithFooters {
    const WALK_MAX: u32 = u32::MAX;
    const FOOTER: bool = true;
}

impl Policy for Bounded {
    const WALK_MAX: u32 = 4;
    const FOOTER: bool = false;
}
