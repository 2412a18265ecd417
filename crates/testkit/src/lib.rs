//! What the tests of all heap crates share: operation streams, a shadow model that checks an allocator while it plays one, and how a test starts itself again.
//!
//! | module | owns |
//! |---|---|
//! | [`again`] | a command that starts the test program again; whether that runs under an emulator |
//! | [`ops`] | streams of allocations, reallocations and frees; the player and the shadow model |

pub mod again;
pub mod ops;
