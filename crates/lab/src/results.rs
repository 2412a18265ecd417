//! The results file: what it holds, and how it is written and read.
//!
//! | module | owns |
//! |---|---|
//! | [`results_file`] | the file: one JSON value per line |
//! | [`file_header`], [`machine`] | its first line: which lab, which machine, which order of runs |
//! | [`outcome`] | its other lines: one run each |
//! | [`warning`] | reasons for doubt, recorded in the file |
//! | [`timestamp`] | times as text |

pub(crate) mod file_header;
pub(crate) mod machine;
pub(crate) mod outcome;
pub(crate) mod results_file;
pub(crate) mod timestamp;
pub(crate) mod warning;
