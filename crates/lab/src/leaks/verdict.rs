//! What becomes of a live block when its process ends.

/// See the module header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Nothing refers to it.
    DefinitelyLost,
    /// Only blocks that are lost refer to it.
    IndirectlyLost,
    /// The program could still free it.
    StillReachable,
}
