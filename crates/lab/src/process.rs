//! Child processes: starting a command under an allocator, watching it, passing signals on, and ending it.
//!
//! ```text
//!  lab ─────────────▶ launcher ─────────────▶ command
//!  command_run        launcher: fork, exec     runs under the preloaded allocator (preload)
//!      ▲                 │ wait4 ◀──────────────── exits
//!      └─────────────────┘
//!        command_record: what the kernel counted
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`preload`] | which library and which options a child gets |
//! | [`child`] | a child run to its end with its output captured, within a time limit |
//! | [`workload_run`] | one run of a built-in workload; its record |
//! | [`command_run`], [`launcher`], [`command_record`] | one run of any command through a small process that measures it |
//! | [`threads`], [`proc_file`] | the threads of a process; what `/proc` says of it |
//! | [`server`] | a client against a server that runs under the allocator |
//! | [`command_file`], [`own_executable`] | finding commands and the lab itself |
//! | [`interrupt`] | signals: asking the lab to stop, passing them on to the command |
//! | [`live_process`] | a process that keeps a page of statistics, read from outside |
//! | [`profiled_process`] | a process that takes requests for heap profiles |
//! | [`exit_report`], [`memory_timeline`], [`monotonic_clock`] | what libfreestone reports of its processes; memory over time |

pub(crate) mod child;
pub(crate) mod command_file;
pub(crate) mod command_record;
pub(crate) mod command_run;
pub(crate) mod exit_report;
pub(crate) mod interrupt;
pub(crate) mod last_states;
pub(crate) mod launcher;
pub(crate) mod live_process;
pub(crate) mod memory_timeline;
pub(crate) mod monotonic_clock;
pub(crate) mod own_executable;
pub(crate) mod preload;
pub(crate) mod proc_file;
pub(crate) mod profiled_process;
pub(crate) mod server;
pub(crate) mod threads;
pub(crate) mod workload_run;
