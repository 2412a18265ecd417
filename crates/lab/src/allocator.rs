//! The allocators that can be measured: finding them, building them, and proving that they answer `malloc`.
//!
//! | module | owns |
//! |---|---|
//! | [`description`], [`as_text`] | an allocator: name, library, version, options; what of it is written into files as text |
//! | [`selection`] | the allocators that the user named, or all available |
//! | [`option_value`] | which values Freestone's options can have, and the variables that set them |
//! | [`freestone_library`], [`peer_library`] | Freestone's library, the peers' libraries |
//! | [`checkout`], [`installation`] | where they come from: built with cargo in a checkout, or installed |
//! | [`preloading`], [`file_capabilities`] | whether a file can be preloaded, and into which commands |
//! | [`lending`] | libraries that every user can read |
//! | [`proof`] | the proof that an allocator answers `malloc` in a workload's process |

mod as_text;
pub(crate) mod checkout;
pub(crate) mod description;
pub(crate) mod file_capabilities;
pub(crate) mod freestone_library;
pub(crate) mod installation;
pub(crate) mod lending;
pub(crate) mod option_value;
pub(crate) mod peer_library;
pub(crate) mod preloading;
pub(crate) mod proof;
pub(crate) mod selection;
