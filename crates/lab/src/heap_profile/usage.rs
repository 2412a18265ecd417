//! Figures: blocks and bytes, live and in total.

use std::ops::{Add, AddAssign, Sub};

/// A number of blocks and their bytes; negative in a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Amount {
    /// Blocks.
    pub(crate) blocks: i64,
    /// Bytes.
    pub(crate) bytes: i64,
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { blocks: self.blocks + other.blocks, bytes: self.bytes + other.bytes }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { blocks: self.blocks - other.blocks, bytes: self.bytes - other.bytes }
    }
}

/// What one call site has allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Usage {
    /// Blocks that were live when the dump was written.
    pub(crate) live: Amount,
    /// All blocks since sampling began, live or freed.
    pub(crate) total: Amount,
}

impl Usage {
    /// The figures of one kind.
    pub(crate) fn of(&self, measure: Measure) -> Amount {
        match measure {
            Measure::Live => self.live,
            Measure::Total => self.total,
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { live: self.live + other.live, total: self.total + other.total }
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { live: self.live - other.live, total: self.total - other.total }
    }
}

/// Which figures of a profile are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Measure {
    /// What was live when the dump was written
    Live,
    /// All that was allocated since sampling began
    Total,
}

impl Measure {
    /// Its name in a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Total => "allocated in total",
        }
    }
}
