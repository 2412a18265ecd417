//! Leaks: the blocks of a process that nothing refers to any more, found from outside when the process ends.
//!
//! ```text
//!  tracer     the command runs at full speed; the kernel stops each of its threads on its way out
//!    │        all threads of a process are held: its memory is as it was
//!    ▼
//!  heap       every live block, from the library's own records    (Heap)
//!  roots      registers, stacks, globals, thread-local storage     (Root)
//!    │
//!    ▼
//!  marking    what the roots lead to is reachable; of the rest, what other lost blocks lead to is lost with them
//!    │
//!    ▼
//!  findings   grouped by stack or by size, less what is suppressed
//! ```
//!
//! Marking is conservative: any word that could be an address within a block keeps the block. So a block that is reported as lost is lost, unless
//! the program hides its address; a block that is not reported may be lost all the same.
//!
//! | module | owns |
//! |---|---|
//! | [`tracer`] | running a command under `ptrace` until its processes end |
//! | [`stopped`] | a process that is stopped: its threads and their registers |
//! | [`examination`] | the steps from its memory to the findings |
//! | [`memory`] | reading the memory of another process |
//! | [`heap_map`], [`heap`] | the library's records: where they are, and the live blocks they tell of |
//! | [`samples`] | the stacks of the blocks that the heap profile sampled |
//! | [`roots`] | where the search begins |
//! | [`marking`], [`verdict`] | the verdicts |
//! | [`findings`] | verdicts in groups, as text and as JSON |
//! | [`suppressions`] | leaks that are known |

pub(crate) mod examination;
pub(crate) mod findings;
mod heap;
mod heap_map;
mod marking;
mod memory;
mod roots;
mod samples;
pub(crate) mod stopped;
pub(crate) mod suppressions;
pub(crate) mod tracer;
pub(crate) mod verdict;
