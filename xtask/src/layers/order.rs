//! The lines `group: a < b < c` of `layers.dag`: which name may see which.

use std::collections::{BTreeMap, BTreeSet};

/// What each name of a group may see.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub below: BTreeMap<String, BTreeSet<String>>,
}

impl Order {
    /// The lines of `text` that start with `group:`.
    pub(super) fn read(text: &str, group: &str) -> Self {
        let mut order = Self::default();
        for line in text.lines().filter_map(|line| line.trim().strip_prefix(group)?.strip_prefix(':')) {
            let mut lower = BTreeSet::new();
            for level in line.split('<') {
                let names: Vec<String> = level.split(',').map(|name| name.trim().to_owned()).collect();
                for name in &names {
                    order.below.entry(name.clone()).or_default().extend(lower.iter().cloned());
                }
                lower.extend(names);
            }
        }
        order
    }

    pub(super) fn is_empty(&self) -> bool {
        self.below.is_empty()
    }

    /// A sentence, if `from` may not name `to`.
    pub(super) fn complaint(&self, from: &str, to: &str) -> Option<String> {
        if from == to {
            return None;
        }
        match self.below.get(from) {
            None => Some(format!("{from} is not in layers.dag; add it")),
            Some(_) if !self.below.contains_key(to) => Some(format!("{to}, which {from} names, is not in layers.dag")),
            Some(below) if below.contains(to) => None,
            Some(_) => Some(format!("{from} names {to}, which is not below it in layers.dag")),
        }
    }
}
