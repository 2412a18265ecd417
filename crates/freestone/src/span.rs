//! Spans: records of runs of pages, and the map from an address to the span that holds it.
//!
//! Layer: above `size_class`, below `page`.
//!
//! | file | owns |
//! |---|---|
//! | [`layout`] | the address range: where pages, span records, bitmaps and page map are, and how far the page map can be read |
//! | [`page_index`] | the number of a page |
//! | [`page_map`] | address → owner and size class, in one load |
//! | [`record`] | the record of a span, kept outside it |
//! | [`owned`] | the proof that a span is the holder's, and what may be done with it |
//! | [`list`] | lists of spans |
//! | [`free_node`] | the contents of a free block: its link, and its mark |
//! | [`uncarved`] | how much of small spans has no memory |
//! | [`blocks`] | the blocks of a small span: free, allocated, or never carved |
//! | [`gone_bytes`] | what went back inside spans of one class that have ended |
//! | [`single_block`] | the blocks of a watched span, one at a time |
//! | [`trailer`] | what a block of a watched span says about itself |
//! | [`marked_block`] | a block of a watched span: its trailer, its canary, and what it is filled with |
//! | [`secret`] | what canaries and trailers are made of |
//! | [`family`] | which functions allocate and free a block |
//! | [`canary`] | the bytes behind what the program asked for |
//! | [`fill`] | what a freed block of a watched span is filled with |
//! | [`erase`] | clearing a freed block |
//! | [`os_pages`] | purging the OS pages of a small span in which no block is out |

pub(crate) mod blocks;
pub(crate) mod canary;
pub(crate) mod erase;
pub(crate) mod family;
pub(crate) mod fill;
pub(crate) mod free_node;
mod gone_bytes;
pub(crate) mod layout;
pub(crate) mod list;
pub(crate) mod marked_block;
pub(crate) mod os_pages;
pub(crate) mod owned;
pub(crate) mod page_index;
pub(crate) mod page_map;
pub(crate) mod record;
pub(crate) mod secret;
pub(crate) mod single_block;
pub(crate) mod trailer;
mod uncarved;

pub(crate) use gone_bytes::GoneBytes;
pub(crate) use layout::{Layout, View};
pub(crate) use list::SpanList;
pub(crate) use owned::OwnedSpan;
pub(crate) use page_index::PageIndex;
pub(crate) use page_map::{Entry, Generation, PageMap, Untagged};
pub(crate) use record::{Kind, PageAccess, Span};
pub(crate) use uncarved::Uncarved;
