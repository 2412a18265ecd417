//! Presentation: tables on the terminal, plots, and HTML pages. It reads results and comparisons and measures nothing.
//!
//! | module | owns |
//! |---|---|
//! | [`quantity`], [`verdict_text`], [`command_line`] | figures, ratios and commands as text |
//! | [`origin`] | the machine and the date, as every picture says them |
//! | [`table`], [`plot`] | tables on a terminal; line plots as SVG |
//! | [`summary_tables`], [`summary_json`], [`workload_list`] | what `freestone bench` prints |
//! | [`count_tables`] | what `freestone bench --count` prints |
//! | [`program_tables`] | what `freestone bench --programs` prints |
//! | [`timeline_files`], [`timeline_picture`] | memory over time, as CSV and as a picture |
//! | [`published`] | the experiments' published figures beside the measured ones |
//! | [`html_page`] | the HTML page |

pub(crate) mod command_line;
pub(crate) mod count_tables;
pub(crate) mod html_page;
pub(crate) mod origin;
pub(crate) mod plot;
pub(crate) mod program_tables;
pub(crate) mod published;
pub(crate) mod quantity;
pub(crate) mod summary_json;
pub(crate) mod summary_tables;
pub(crate) mod table;
pub(crate) mod timeline_files;
pub(crate) mod timeline_picture;
pub(crate) mod verdict_text;
pub(crate) mod workload_list;
