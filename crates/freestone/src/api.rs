//! The entrances: what C's `malloc` family, Rust's `GlobalAlloc` and explicit heaps call.
//!
//! Layer: the top of the heap.
//!
//! | file | owns |
//! |---|---|
//! | [`alloc`] | allocating: the hot path and what is behind it |
//! | [`free`] | freeing, and asking what a block is |
//! | [`realloc`] | changing a block's size |
//! | [`rust`] | [`Freestone`](crate::Freestone), the `GlobalAlloc` |
//! | [`heap`] | [`Heap`](crate::Heap), an explicit heap destroyed at once |
//! | [`global`] | the process's one allocator: start, threads' birth and death |
//! | [`background`] | the allocator's own thread |
//! | [`fork`] | staying whole across `fork` |
//! | `stdio` | the C library's lock that comes before ours at a fork |
//! | `pin` | keeping the object that has the allocator in it loaded |
//! | [`options`] | applying options from environment, symbol and API |
//! | [`pressure`] | when memory is short: what is done before an allocation fails |
//! | [`snapshot`] | statistics |
//! | [`report`] | the lines that `freestone run` reads |

pub mod alloc;
pub mod background;
pub mod fork;
pub mod free;
pub mod global;
pub mod heap;
pub mod options;
mod pin;
pub mod pressure;
pub mod realloc;
pub mod report;
pub mod rust;
pub mod snapshot;
mod stdio;
