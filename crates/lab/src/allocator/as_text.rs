//! Paths and values of variables in files of JSON: as text, in which what is not UTF-8 is replaced.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::path::PathBuf;

/// Writes a path.
pub(super) fn path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}

/// Writes variables.
pub(super) fn serialize<S: Serializer>(variables: &[(String, OsString)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(variables.iter().map(|(name, value)| (name, value.to_string_lossy())))
}

/// Reads variables.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, OsString)>, D::Error> {
    let variables = Vec::<(String, String)>::deserialize(deserializer)?;
    Ok(variables.into_iter().map(|(name, value)| (name, value.into())).collect())
}
