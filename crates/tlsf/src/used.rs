//! A block in use, as deallocation and reallocation pass it on: with the headers that were found intact.

use crate::block::Block;
use crate::header::Header;

/// A block in use with its header, and the header behind it.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    pub(crate) block: Block,
    pub(crate) header: Header,
    pub(crate) next: Block,
    pub(crate) next_header: Header,
}
