//! Names for code addresses of another process: functions, with those inlined into them, files and lines.
//!
//! ```text
//!  address ─▶ mapping ─▶ module (an ELF file, and the file with its debugging information) ─▶ frames, innermost first
//! ```
//!
//! What cannot be named stays an offset into its module, or an address: a stack never gets shorter because a symbol is missing.
//!
//! | module | owns |
//! |---|---|
//! | [`symbolizer`] | the names of all addresses of a process |
//! | [`frame`] | a function on a stack |
//! | [`mapping`] | a line of `/proc/PID/maps` |
//! | [`module`] | one ELF file: from offsets or addresses in it to functions and lines |
//! | [`demangled`] | names of C++ and Rust as people write them |

mod demangled;
pub(crate) mod frame;
pub(crate) mod mapping;
pub(crate) mod module;
pub(crate) mod symbolizer;
