//! What there is one of for each size class, and for each heap.

/// The blocks of a size class, or the large blocks. Fields are bytes unless they are named `n_…`.
///
/// ```
/// use freestone::Freestone;
///
/// #[global_allocator]
/// static ALLOCATOR: Freestone = Freestone;
///
/// let blocks: Vec<_> = (0..100).map(|number| Box::new([number; 500])).collect();
/// let live = ALLOCATOR.with_details(|details| {
///     details.classes.iter().filter(|class| class.block_bytes >= 2000).map(|class| class.n_live()).sum::<u64>()
/// });
/// assert!(live >= Some(blocks.len() as u64));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassStats {
    /// Bytes of a block; 0 in the row of the large blocks, whose sizes differ.
    pub block_bytes: u64,
    /// Blocks that the program holds, in full.
    pub live: u64,
    /// Free blocks that threads cache, or that are in flight to their spans.
    pub cached: u64,
    /// Blocks allocated since the start.
    pub n_allocations: u64,
    /// Blocks freed since the start.
    pub n_frees: u64,
    /// Of these, blocks freed in a span that another heap owned.
    pub n_remote_frees: u64,
}

impl ClassStats {
    /// Whether there is anything to say: a thread that allocates the first block of the class may have others at hand before it has counted that one.
    ///
    /// ```
    /// use freestone::ClassStats;
    ///
    /// let mut class = ClassStats::default();
    /// assert!(!class.has_figures());
    /// class.cached = 640;
    /// assert!(class.has_figures());
    /// ```
    #[must_use]
    pub fn has_figures(&self) -> bool {
        self.n_allocations != 0 || self.cached != 0
    }

    /// Blocks that the program holds.
    ///
    /// ```
    /// use freestone::ClassStats;
    ///
    /// let mut class = ClassStats::default();
    /// class.block_bytes = 64;
    /// class.live = 640;
    /// assert_eq!(class.n_live(), 10);
    /// ```
    #[must_use]
    pub fn n_live(&self) -> u64 {
        let of_large = self.n_allocations.saturating_sub(self.n_frees);
        self.live.checked_div(self.block_bytes).unwrap_or(of_large)
    }
}

/// Whose blocks a heap has.
///
/// ```
/// use freestone::{Heap, HeapKind};
///
/// // SAFETY: no block is allocated from it.
/// let heap = unsafe { Heap::new() }.expect("memory for a heap");
/// assert_eq!(heap.stats().kind, HeapKind::Explicit);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapKind {
    /// One thread's.
    #[default]
    Thread,
    /// Those of all threads that cannot have a heap of their own.
    Shared,
    /// Those of an explicit heap.
    Explicit,
}

impl HeapKind {
    /// Its name in texts.
    ///
    /// ```
    /// use freestone::Freestone;
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: Freestone = Freestone;
    ///
    /// let _held = vec![1_u8; 100];
    /// let has_a_thread = ALLOCATOR.with_details(|details| details.heaps.iter().any(|heap| heap.kind.name() == "thread"));
    /// assert_eq!(has_a_thread, Some(true));
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Shared => "shared",
            Self::Explicit => "explicit",
        }
    }
}

/// One heap: that of a thread, or an explicit one. Fields are bytes unless they are named `n_…`.
///
/// Blocks pass between threads, so how much of its blocks the program holds is known of an explicit heap only.
///
/// ```
/// use core::alloc::Layout;
/// use freestone::Heap;
///
/// // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
/// let heap = unsafe { Heap::new() }.expect("memory for a heap");
/// heap.set_limit(Some(1 << 20))?;
/// let before = heap.stats();
/// let _block = heap.allocate(Layout::new::<[u8; 100]>());
/// let stats = heap.stats();
/// assert_eq!((stats.n_allocations - before.n_allocations, stats.live, stats.limit), (1, 112, 1 << 20));
/// # Ok::<(), freestone::options::Mistake>(())
/// ```
///
/// Wide because: it is one field for each figure of a heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStats {
    /// Its number, from 1; a heap that has ended leaves its number to a later one.
    pub number: u32,
    /// Whose blocks it has.
    pub kind: HeapKind,
    /// The kernel's number of its thread; 0 if that is not known, which it is with the option `live` only.
    pub thread_id: u32,
    /// Spans that it has taken from the page heap and not given back.
    pub spans: u64,
    /// Free blocks that it caches: in bins, and in the large-run cache.
    pub cached: u64,
    /// Explicit heaps: blocks that the program holds, those that other threads have freed and the heap has not got back yet, and, of a heap hardened
    /// with [`Harden::Checks`](crate::options::Harden::Checks) or more, freed blocks that wait in its quarantine; else 0.
    pub live: u64,
    /// Explicit heaps: the part of `live` in large blocks; else 0.
    pub large: u64,
    /// Explicit heaps: the limit of spans and large blocks together; 0 if there is none.
    pub limit: u64,
    /// Blocks allocated from it, and from earlier heaps of its number.
    pub n_allocations: u64,
    /// Blocks freed by its thread, and in earlier heaps of its number.
    pub n_frees: u64,
    /// Of these, blocks freed in a span that another heap owned.
    pub n_remote_frees: u64,
    /// Batches in which those blocks were handed to their owners.
    pub n_handovers: u64,
}

/// The part of the dirty memory that has been free for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirtyAge {
    /// From and to, in parts of the decay time.
    pub(crate) age: &'static str,
    /// Bytes.
    pub(crate) bytes: u64,
}
