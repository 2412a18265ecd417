//! Recording: every call of the allocator, written to a trace (`docs/recording.md`).
//!
//! ```text
//!  a thread's call ─▶ Recorder ─▶ words into the open chunk ─▶ the file, whatever becomes of the process
//!                         │ full                                     ▲
//!                         └─▶ sealed; TraceFile: the next chunk ─────┘
//! ```
//!
//! | file | owns |
//! |---|---|
//! | [`trace_name`] | the names that a process tries for its file |
//! | [`trace_file`] | the file: its header, where the next chunk is, the sequence number |
//! | [`recorder`] | one thread's words: into which chunk, when the clock is read |
//!
//! How a thread's calls get here: `thread::recorded` and `api::recording`.
//!
//! Layer: beside `usage`; the format is the crate `freestone-trace`'s.

pub(crate) mod recorder;
pub(crate) mod trace_file;
mod trace_name;
