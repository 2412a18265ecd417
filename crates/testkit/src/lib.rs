//! What every test of an allocator needs: operation streams and a shadow model.
//!
//! | module | owns |
//! |---|---|
//! | [`ops`] | streams of allocations, reallocations and frees; the shadow that checks who plays them |

pub mod ops;
