//! Size classes: which block size serves each request.
//!
//! ```text
//! class      0   1  …  15 │  16   17  …   23 │  24 …  31 │   32   33 …   39 │ … │   48   49 …   55 │   56   57 …    63 │    64 …    69    70 │    71
//! block     16  32  … 256 │ 288  320  …  512 │ 576 … 1024│ 1056 1152 … 2048 │ … │ 4368 4672 … 8192 │ 8448 9216 … 16384 │ 18432 … 28672 32768 │ 32784  bytes
//! step            16      │        32        │     64    │    32 to 192     │ … │    272 to 768    │    256 to 1536    │       2048     4096 │    16
//! ```
//!
//! Steps of 16 bytes up to 256, then 8 steps per doubling up to 32 KiB, equal but for those from 1, 4 and 8 KiB on: above 128 bytes at
//! most 12.5 % of a block is wasted. Programs put a header before 1, 4 or 8 KiB, so the first of these steps is short
//! (`docs/decisions/0050-the-peak-of-real-programs.md`, `docs/decisions/0074-classes-for-8-kib-and-a-header.md`). The last class is the class of no size: a watched heap, whose blocks have trailers, serves from it what fills a block of 32 KiB,
//! as the buffers of many programs do (`size_class/tests.rs` computes it for every size). Source: mimalloc's bins have the same eight steps per doubling; jemalloc's size classes have four.
//!
//! Invariants: block sizes are multiples of 16 and rise with the class; the class of a size is the smallest whose block holds it.
//! Layer: the lowest of the heap; pure arithmetic, evaluated at compile time where it can be.

use freestone_base::units::Pages;

/// Number of size classes.
pub(crate) const N_CLASSES: usize = 72;

/// The class for sizes up to [`SMALL_MAX`] and a trailer.
pub(crate) const LAST_CLASS: usize = N_CLASSES - 1;

/// The largest size served by a size class, in bytes; larger requests get large blocks.
pub(crate) const SMALL_MAX: usize = 32 * 1024;

/// Block sizes are multiples of this, and so are block addresses.
pub(crate) const GRANULE_BYTES: usize = 16;

/// Classes in the first part, one per granule.
const N_FINE: usize = 16;

/// Classes per doubling in the second part.
const PER_DOUBLING: usize = 8;

/// The steps from 1 KiB to 2 KiB, and from 8 KiB to 16 KiB, in parts of their start: the first for a header, the next leads to where an equal one would.
const HEADER_STEPS: [usize; PER_DOUBLING] = [1, 3, 4, 4, 4, 4, 6, 6];

/// See [`HEADER_STEPS`].
const HEADER_PARTS: usize = 32;

/// The steps from 4 KiB to 8 KiB. A page of SQLite's cache has 4368 bytes, of which a span holds 15.
const STEPS_FROM_4_KIB: [usize; PER_DOUBLING] = [272, 304, 448, 512, 512, 640, 640, 768];

/// Blocks of at most this size are in spans of one page; larger ones in spans of four, so that at least eight fit.
const ONE_PAGE_MAX: usize = 8 * 1024;

/// The index of a size class, below [`N_CLASSES`].
pub(crate) type SizeClass = u8;

/// Block size in bytes of each class.
pub(crate) static BLOCK_BYTES: [u32; N_CLASSES] = block_bytes_table();

/// Class of each number of granules, up to [`SMALL_MAX`].
pub(crate) static CLASS_OF_GRANULES: [SizeClass; SMALL_MAX / GRANULE_BYTES + 1] = class_table();

/// `ceil(2^64 / block size)`. The product with an offset, of 128 bits, has the number of the block in its upper half, exactly for every offset in a span
/// (they have 18 bits: the longest span is 256 KiB). Its lower half is less than the factor itself if and only if the block starts there.
static RECIPROCAL: [u64; N_CLASSES] = reciprocal_table();

const fn block_bytes_table() -> [u32; N_CLASSES] {
    let mut table = [0; N_CLASSES];
    let mut class = 0;
    while class < N_CLASSES {
        table[class] = if class < N_FINE {
            (class + 1) * GRANULE_BYTES
        } else {
            let (doubling, step) = ((class - N_FINE) / PER_DOUBLING, (class - N_FINE) % PER_DOUBLING);
            // The class before this one is done.
            table[class - 1] as usize + step_bytes((N_FINE * GRANULE_BYTES) << doubling, step)
        } as u32;
        class += 1;
    }
    table[LAST_CLASS - 1] = SMALL_MAX as u32;
    table[LAST_CLASS] = (SMALL_MAX + GRANULE_BYTES) as u32;
    table
}

/// From the block size of a class to that of the next: the step with this number, from 0, of the doubling that starts at `base`.
const fn step_bytes(base: usize, step: usize) -> usize {
    match base {
        1024 | 8192 => HEADER_STEPS[step] * (base / HEADER_PARTS),
        4096 => STEPS_FROM_4_KIB[step],
        _ => base / PER_DOUBLING,
    }
}

const fn class_table() -> [SizeClass; SMALL_MAX / GRANULE_BYTES + 1] {
    let blocks = block_bytes_table();
    let mut table = [0; SMALL_MAX / GRANULE_BYTES + 1];
    let (mut granules, mut class) = (0, 0);
    while granules < table.len() {
        while (blocks[class] as usize) < granules * GRANULE_BYTES {
            class += 1;
        }
        table[granules] = class as SizeClass;
        granules += 1;
    }
    table
}

const fn reciprocal_table() -> [u64; N_CLASSES] {
    let blocks = block_bytes_table();
    let mut table = [0; N_CLASSES];
    let mut class = 0;
    while class < N_CLASSES {
        table[class] = (1u128 << u64::BITS).div_ceil(blocks[class] as u128) as u64;
        class += 1;
    }
    table
}

const _: () = assert!(class_table()[SMALL_MAX / GRANULE_BYTES] as usize == LAST_CLASS - 1);

/// The class that serves `size` bytes; `size` must be at most [`SMALL_MAX`]. Size 0 is served like 1.
#[inline(always)]
#[must_use]
// `div_ceil` also handles a sum that overflows, which takes two more instructions.
#[allow(clippy::manual_div_ceil)]
pub(crate) const fn class_of(size: usize) -> usize {
    debug_assert!(size <= SMALL_MAX);
    CLASS_OF_GRANULES[(size + GRANULE_BYTES - 1) / GRANULE_BYTES] as usize
}

/// The class that serves `size` bytes aligned to `align` (a power of two), or `None` if that takes a large block.
///
/// A block's offset in its span is a multiple of its size, and spans are aligned to pages: a block is aligned to `align`
/// if its size is a multiple of it.
#[inline]
#[must_use]
pub(crate) const fn class_of_aligned(size: usize, align: usize) -> Option<usize> {
    if size > SMALL_MAX || align > SMALL_MAX {
        return None;
    }
    if align <= GRANULE_BYTES {
        return Some(class_of(size));
    }
    // The next power of two is a multiple of `align`; a class between may be one as well.
    let rounded = if size < align { align } else { (size + align - 1) & !(align - 1) };
    if rounded > SMALL_MAX {
        return None;
    }
    let mut class = class_of(rounded);
    while block_bytes(class) % align != 0 {
        class += 1;
    }
    Some(class)
}

/// Block size in bytes of a class.
#[inline]
#[must_use]
pub(crate) const fn block_bytes(class: usize) -> usize {
    if class >= N_CLASSES {
        no_class();
    }
    BLOCK_BYTES[class] as usize
}

/// Panics: a number is none of a class. It has no parameters, so a function that indexes by class several times has one call of it, not one with a place in
/// the source for each.
#[cold]
#[inline(never)]
const fn no_class() -> ! {
    panic!("no size class has this number")
}

/// Pages in a span of a class, unless the option `span_size` is larger.
#[inline]
#[must_use]
pub(crate) const fn span_pages(class: usize) -> Pages {
    if block_bytes(class) <= ONE_PAGE_MAX { Pages(1) } else { Pages(4) }
}

/// Blocks in a span of `span_pages(class)` pages.
#[cfg(test)]
pub(crate) const fn span_blocks(class: usize) -> usize {
    span_pages(class).to_bytes().0 / block_bytes(class)
}

/// The block of a span of `class` that holds the byte at `offset`, and whether `offset` is where it starts.
#[inline]
#[must_use]
pub(crate) const fn block_at(class: usize, offset: usize) -> (usize, bool) {
    BlockDivision::of(class).block_at(offset)
}

/// Divides offsets in a span by the block size of its class: for loops, which read the tables once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockDivision {
    reciprocal: u64,
}

impl BlockDivision {
    /// Of a class.
    #[inline]
    #[must_use]
    pub(crate) const fn of(class: usize) -> Self {
        if class >= N_CLASSES {
            no_class();
        }
        Self { reciprocal: RECIPROCAL[class] }
    }

    /// The block that holds the byte at `offset`, and whether `offset` is where it starts.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn block_at(self, offset: usize) -> (usize, bool) {
        let product = offset as u128 * self.reciprocal as u128;
        ((product >> u64::BITS) as usize, (product as u64) < self.reciprocal)
    }
}

mod per_class;
pub(crate) use per_class::PerClass;

#[cfg(test)]
mod tests;
