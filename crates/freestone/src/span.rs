//! Spans: runs of pages with one use, and the map from an address to its span.
//!
//! Layer: above `size_class`, below `page`.
//!
//! | file | owns |
//! |---|---|
//! | [`layout`] | the window: where pages, span records and bitmaps are, and how far the page map can be read |
//! | [`page_index`] | the number of a page |
//! | [`page_map`] | address → owner and size class, in one load |
//! | [`record`] | what is known of a span, out of band |
//! | [`list`] | lists of spans |
//! | [`blocks`] | the blocks of a small span: free, carved, out |
//! | [`os_pages`] | the OS pages of a small span, and giving back those in which no block is out |

pub mod blocks;
pub mod layout;
pub mod list;
pub mod os_pages;
pub mod page_index;
pub mod page_map;
pub mod record;

pub use layout::{Layout, View};
pub use list::SpanList;
pub use page_index::PageIndex;
pub use page_map::{Entry, Generation, PageMap};
pub use record::{Kind, Span};
