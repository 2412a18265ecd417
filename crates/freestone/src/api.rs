//! The entry points: what C's `malloc` family, Rust's `GlobalAlloc` and explicit heaps call.
//!
//! ```text
//!  entry points   alloc  free  realloc  global_alloc  explicit_heap  allocator  access  profile
//!                   │
//!  slow paths     local_heap, shortage        this thread's heap; room before an allocation fails
//!                   │
//!  wiring         process                     the one allocator: parts, start, hooks
//!                   │
//!  parts          background  faults  fork  freed_early  heap_map  live  options  pressure  profile_control  profile_files
//!                  profile_page  report  snapshot  start
//!                   │
//!  names          file_name
//! ```
//!
//! A file names only files below it. The parts do not rely on being the only one of their kind: callers pass what they need.
//!
//! Layer: the top of the heap.
//!
//! | file | owns |
//! |---|---|
//! | [`alloc`] | allocating: the hot path and what is behind it |
//! | [`free`] | freeing, and a block's usable size |
//! | [`realloc`] | changing a block's size |
//! | `global_alloc` | [`Freestone`](crate::Freestone), the `GlobalAlloc` |
//! | `allocator` | the `Allocator` traits of other crates, for both |
//! | `explicit_heap` | [`Heap`](crate::Heap), an explicit heap destroyed at once |
//! | [`profile`] | the heap profile |
//! | [`access`] | the checks of memory functions |
//! | `recording` | calls that are recorded |
//! | `local_heap` | the heap of the calling thread, for slow paths |
//! | `shortage` | what is done before an allocation fails |
//! | `process` | the process's one allocator: its parts, how they start, and the hooks of the system |
//! | `background` | the allocator's own thread |
//! | `faults` | accesses to guarded blocks that must not be |
//! | `file_name` | names of files in which letters stand for numbers |
//! | `fork` | holding every lock while the process is copied |
//! | `freed_early` | blocks that were freed where there was no heap |
//! | [`heap_map`] | where the heap is, for tracers |
//! | `live` | the page of statistics that `freestone top` reads |
//! | `options` | applying options from environment, symbol and API |
//! | `pressure` | the function the program has called when memory is short |
//! | `profile_control` | requests for heap profiles, and when one is due |
//! | [`profile_page`] | the page that `freestone profile PID` writes to |
//! | `profile_files` | the files of heap profiles |
//! | `report` | the lines that `freestone run` reads |
//! | `snapshot` | statistics |
//! | `start` | that the allocator starts once |

pub(crate) mod access;
pub(crate) mod alloc;
#[cfg(any(feature = "allocator-api2", feature = "allocator-api2-02", feature = "nightly"))]
mod allocator;
mod background;
pub(crate) mod explicit_heap;
mod faults;
mod file_name;
mod fork;
pub(crate) mod free;
mod freed_early;
pub(crate) mod global_alloc;
pub(crate) mod heap_map;
mod live;
mod local_heap;
mod options;
pub(crate) mod owner;
pub(crate) mod pressure;
mod process;
pub(crate) mod profile;
mod profile_control;
mod profile_files;
pub(crate) mod profile_page;
pub(crate) mod realloc;
mod recording;
mod report;
mod shortage;
mod snapshot;
mod start;
