//! What the tests of all heap crates share: operation streams, and a shadow model that checks an allocator while it plays one.
//!
//! | module | owns |
//! |---|---|
//! | [`ops`] | streams of allocations, reallocations and frees; the player and the shadow model |

pub mod ops;
