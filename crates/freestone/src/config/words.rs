//! The words that options take, as types, and their comparison.

/// Whether `text` is `word`, in whatever case.
#[inline(never)]
pub(crate) fn is_word(text: &[u8], word: &[u8]) -> bool {
    text.eq_ignore_ascii_case(word)
}

/// What happens on an invalid free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MisusePolicy {
    /// A message, then abort.
    Abort,
    /// A message; the block is left alone.
    Report,
    /// Nothing; the block is left alone.
    Ignore,
}

/// Whether the allocator has a thread of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// While more than one thread of the program has a heap.
    Auto,
    /// While any thread has a heap.
    On,
    /// Never.
    Off,
}

/// How memory is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purge {
    /// At once.
    DontNeed,
    /// When the kernel is short of memory.
    Free,
}

/// When the heap profile samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapProfiling {
    /// From when the program asks for it.
    Ready,
    /// From the start on.
    On,
}

/// The signal that starts profiling, or has a profile written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileSignal {
    /// `SIGUSR1`.
    Usr1,
    /// `SIGUSR2`.
    Usr2,
}

/// What huge pages are requested for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thp {
    /// Large blocks that grow, or that are as long as earlier ones that were densely written.
    Auto,
    /// Everything.
    On,
    /// Nothing.
    Off,
}

/// When and how memory gets its physical pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefault {
    /// When it is first written.
    Off,
    /// When it is mapped, by a write to every OS page.
    Touch,
    /// When it is mapped, after advice to the kernel that it will be needed.
    WillNeed,
    /// When it is mapped, by asking the kernel for them.
    Populate,
}
