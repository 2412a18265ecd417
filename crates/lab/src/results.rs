//! The results file: what it holds, and how it is written and read.
//!
//! | module | owns |
//! |---|---|
//! | [`file`] | the file: one JSON value per line |
//! | [`header`], [`machine`] | its first line: which lab, which machine, which order of runs |
//! | [`outcome`] | its other lines: one run each |
//! | [`warning`] | reasons for doubt, recorded in the file |
//! | [`timestamp`] | times as text |

pub(crate) mod file;
pub(crate) mod header;
pub(crate) mod machine;
pub(crate) mod outcome;
pub(crate) mod timestamp;
pub(crate) mod warning;
