//! A place of the quarantine: the start of a block, and its class if it is a small one of the heap.

use crate::size_class::N_CLASSES;

/// The class of a block that is no small one of the heap.
const OTHER: usize = u8::MAX as usize;

const _: () = assert!(N_CLASSES < OTHER);

/// Start and class in one word: a program's addresses have fewer bits than that.
#[cfg(target_pointer_width = "64")]
mod word {
    use super::OTHER;

    /// Where the class is.
    const CLASS_AT: u32 = 56;

    /// See the module header.
    #[derive(Clone, Copy, Debug)]
    #[repr(transparent)]
    pub(crate) struct Place(*mut u8);

    impl Place {
        /// Of a block, and of its class if it is a small one of the heap.
        #[inline(always)]
        pub(crate) fn new(start: *mut u8, class: Option<usize>) -> Self {
            debug_assert!(start.addr() >> CLASS_AT == 0, "a program's addresses have fewer bits");
            Self(start.map_addr(|address| address | class.unwrap_or(OTHER) << CLASS_AT))
        }

        /// The start of the block.
        #[inline(always)]
        pub(crate) fn start(self) -> *mut u8 {
            self.0.map_addr(|address| address << (usize::BITS - CLASS_AT) >> (usize::BITS - CLASS_AT))
        }

        /// Its class; no class's number if it has none.
        #[inline(always)]
        pub(crate) fn class(self) -> usize {
            self.0.addr() >> CLASS_AT
        }
    }
}

/// Start and class in two words.
#[cfg(not(target_pointer_width = "64"))]
mod word {
    use super::OTHER;

    /// See the module header.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Place {
        start: *mut u8,
        class: usize,
    }

    impl Place {
        /// Of a block, and of its class if it is a small one of the heap.
        #[inline(always)]
        pub(crate) fn new(start: *mut u8, class: Option<usize>) -> Self {
            Self { start, class: class.unwrap_or(OTHER) }
        }

        /// The start of the block.
        #[inline(always)]
        pub(crate) fn start(self) -> *mut u8 {
            self.start
        }

        /// Its class; no class's number if it has none.
        #[inline(always)]
        pub(crate) fn class(self) -> usize {
            self.class
        }
    }
}

pub(crate) use word::Place;

#[cfg(test)]
mod tests;
