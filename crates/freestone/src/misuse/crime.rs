//! Crimes: what is wrong with a pointer that the program passed, and the line that says so.

use core::fmt;

/// What a memory function does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The function's name.
    pub function: &'static str,
    /// Whether it writes.
    pub is_write: bool,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.function, if self.is_write { "writes" } else { "reads" })
    }
}

/// What is wrong with a pointer that the program passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// It is a block that is free already.
    DoubleFree {
        /// Bytes of the block.
        block_bytes: usize,
    },
    /// It points inside a block.
    Interior {
        /// Bytes of the block.
        block_bytes: usize,
        /// Bytes from the block's start.
        offset: usize,
    },
    /// No allocation returned it.
    Foreign,
    /// It is a block behind whose end was written.
    Overflow {
        /// Bytes of the block.
        block_bytes: usize,
        /// Bytes that the program asked for, if that is still known.
        size: Option<usize>,
        /// Bytes from the block's start to the first that was seen to be wrong.
        offset: usize,
    },
    /// It is a freed block that was written. The address is 0 if only the consequence is known: that the bin's next block, which the link of a
    /// block named that was allocated meanwhile, is none.
    WriteAfterFree {
        /// Bytes of the block.
        block_bytes: usize,
        /// Bytes that the program had asked for, if that is still known.
        size: Option<usize>,
        /// Bytes from the block's start to the first that was seen to be wrong; 0 of a damaged link or mark.
        offset: usize,
    },
    /// It is a block, and what was accessed is beside it.
    BesideBlock {
        /// Bytes of the block, or of its size class.
        block_bytes: usize,
        /// Bytes that the program asked for, if that is still known.
        size: Option<usize>,
        /// Bytes from the block's start to the access; negative before it.
        offset: isize,
        /// What was done.
        touch: Touch,
    },
    /// It is a block that was accessed after its free.
    FreedBlock {
        /// Bytes of the block, or of its size class.
        block_bytes: usize,
        /// Bytes that the program had asked for, if that is still known.
        size: Option<usize>,
        /// Bytes from the block's start to the access.
        offset: isize,
        /// What was done.
        touch: Touch,
    },
    /// It is a block of another size than the program says.
    WrongSize {
        /// Bytes that the program asked for.
        size: usize,
        /// Bytes that it says it asked for.
        claimed: usize,
    },
    /// It is a block of another alignment than the program says.
    WrongAlign {
        /// Bytes that the program asked for.
        size: usize,
        /// The alignment that it asked for.
        align: usize,
        /// The alignment that it says it asked for.
        claimed: usize,
    },
    /// It is a block that other functions allocated than those that free it.
    WrongFamily {
        /// Bytes that the program asked for.
        size: usize,
    },
    /// It is a block that a memory function would access beyond its end.
    OutOfBounds {
        /// The access.
        access: Access,
        /// Bytes that the program may use.
        size: usize,
        /// Bytes from the block's start to the first that would be accessed.
        offset: usize,
        /// Bytes that would be accessed.
        bytes: usize,
    },
    /// It is a block that a memory function would access, and that is not the program's.
    UseAfterFree {
        /// The access.
        access: Access,
        /// Bytes from the block's start to the first that would be accessed.
        offset: usize,
        /// Bytes that would be accessed.
        bytes: usize,
    },
}

impl Misuse {
    /// It is a freed block whose link or mark was overwritten.
    pub(crate) fn link_written(block_bytes: usize) -> Self {
        Self::WriteAfterFree { block_bytes, size: None, offset: 0 }
    }
}

/// What was done to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// It was read.
    Read,
    /// It was written.
    Write,
    /// One of the two.
    Unknown,
}

impl Touch {
    /// What is known of an access: whether it was a write.
    pub(crate) fn new(is_write: Option<bool>) -> Self {
        is_write.map_or(Self::Unknown, |is_write| if is_write { Self::Write } else { Self::Read })
    }
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Unknown => "access",
        })
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoubleFree { .. } => f.write_str("double free"),
            Self::Interior { .. } => f.write_str("free of an address inside a block"),
            Self::Foreign => f.write_str("free of a pointer that Freestone did not allocate, or has taken back"),
            Self::Overflow { .. } => f.write_str("write behind the end of a block"),
            Self::WriteAfterFree { .. } => f.write_str("write to a freed block"),
            Self::BesideBlock { offset: ..0, touch, .. } => write!(f, "{touch} before the start of a block"),
            Self::BesideBlock { touch, .. } => write!(f, "{touch} behind the end of a block"),
            Self::FreedBlock { touch: Touch::Read, .. } => f.write_str("read of a freed block"),
            Self::FreedBlock { touch, .. } => write!(f, "{touch} to a freed block"),
            Self::WrongSize { .. } => f.write_str("free of a block of another size"),
            Self::WrongAlign { .. } => f.write_str("free of a block of another alignment"),
            Self::WrongFamily { .. } => f.write_str("free by other functions than those that allocated"),
            Self::OutOfBounds { access, .. } => write!(f, "{access} beyond the end of a block"),
            Self::UseAfterFree { access, .. } => write!(f, "{access} in a freed block"),
        }
    }
}

/// A crime, in one line: what, where, of which size, by which thread.
pub(super) struct Line {
    pub(super) what: Misuse,
    pub(super) address: usize,
    pub(super) thread: u32,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, address, thread } = *self;
        match what {
            Misuse::DoubleFree { block_bytes } => {
                write!(f, "{what} of {address:#x} ({block_bytes}-byte block, freed by thread {thread})")
            }
            Misuse::Interior { block_bytes, offset } => write!(
                f,
                "{what}: {address:#x} is {offset} bytes into a {block_bytes}-byte block (freed by thread {thread})"
            ),
            Misuse::WriteAfterFree { block_bytes, .. } if address == 0 => {
                write!(f, "{what} of {block_bytes} bytes (seen by thread {thread})")
            }
            Misuse::Foreign => write!(f, "{what}: {address:#x} (freed by thread {thread})"),
            Misuse::Overflow { block_bytes, size, offset } | Misuse::WriteAfterFree { block_bytes, size, offset } => {
                let asked = Asked(size);
                write!(
                    f,
                    "{what}: {address:#x} ({asked}{block_bytes}-byte block), at offset {offset} (seen by thread {thread})"
                )
            }
            Misuse::BesideBlock { block_bytes, size, offset, .. }
            | Misuse::FreedBlock { block_bytes, size, offset, .. } => {
                let asked = Asked(size);
                write!(
                    f,
                    "{what}: {address:#x} ({asked}{block_bytes}-byte block), at offset {offset} (seen by thread {thread})"
                )
            }
            Misuse::WrongSize { size, claimed } => {
                write!(f, "{what}: {address:#x} ({size} bytes requested), freed as {claimed} bytes by thread {thread}")
            }
            Misuse::WrongAlign { size, align, claimed } => write!(
                f,
                "{what}: {address:#x} ({size} bytes requested, aligned to {align}), freed as aligned to {claimed} by thread {thread}"
            ),
            Misuse::WrongFamily { size } => {
                write!(f, "{what}: {address:#x} ({size} bytes requested, freed by thread {thread})")
            }
            Misuse::OutOfBounds { size, offset, bytes, .. } => write!(
                f,
                "{what}: {address:#x} ({size} bytes requested), {bytes} bytes at offset {offset} (by thread {thread})"
            ),
            Misuse::UseAfterFree { offset, bytes, .. } => {
                write!(f, "{what}: {address:#x}, {bytes} bytes at offset {offset} (by thread {thread})")
            }
        }
    }
}

/// What the program asked for, if it is known, as the first words of a description.
struct Asked(Option<usize>);

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |size| write!(f, "{size} bytes requested, "))
    }
}
