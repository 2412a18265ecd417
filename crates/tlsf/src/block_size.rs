//! The three numbers that every block's size follows from, in bytes.
//!
//! A block's size is the distance from its header to the next header: a multiple of [`GRANULE`], [`LEAST_BLOCK_BYTES`] or more. The
//! header is part of it.

/// The unit of block sizes, in bytes, and the alignment of every block's payload.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// # let mut heap = freestone_tlsf::Tlsf::new();
/// # heap.add_region(&mut memory.0)?;
/// use freestone_tlsf::GRANULE;
///
/// let block = heap.allocate(1, 1)?;
/// assert_eq!(block.addr().get() % GRANULE, 0);
/// assert!(heap.blocks().all(|block| block.block_bytes % GRANULE == 0));
/// # Ok::<(), freestone_tlsf::Error>(())
/// ```
pub const GRANULE: usize = 16;

/// Bytes of the header in front of each block's payload.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// # let mut heap = freestone_tlsf::Tlsf::new();
/// # heap.add_region(&mut memory.0)?;
/// use freestone_tlsf::HEADER_BYTES;
///
/// heap.allocate(100, 16)?;
/// assert!(heap.blocks().all(|block| block.usable_bytes + HEADER_BYTES == block.block_bytes));
/// # Ok::<(), freestone_tlsf::Error>(())
/// ```
pub const HEADER_BYTES: usize = 8;

/// Bytes of the smallest block, header included: a free block needs that much for its header, two links and its size.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// # let mut heap = freestone_tlsf::Tlsf::new();
/// # heap.add_region(&mut memory.0)?;
/// heap.allocate(1, 16)?;
/// assert_eq!(heap.leaks().next().map(|block| block.block_bytes), Some(freestone_tlsf::LEAST_BLOCK_BYTES));
/// # Ok::<(), freestone_tlsf::Error>(())
/// ```
pub const LEAST_BLOCK_BYTES: usize = 32;
