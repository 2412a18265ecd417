//! What the view shows, and how keys change it.

use super::sampler::{Rates, Sampler};
use freestone::HeapKind;
use freestone::door::live::LiveState;
use std::cmp::Ordering;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Help,
    Close,
    OtherTable,
    Scroll(i32),
    NextColumn,
    PreviousColumn,
    SortByMemory,
    SortByRate,
    SortByName,
    Reverse,
    Pause,
}

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tab {
    Classes,
    Heaps,
}

/// A column of both tables. Columns are numbers, and are sorted from the largest down, but for the first.
pub(super) const COLUMNS: [[&str; 6]; 2] = [
    ["SIZE", "LIVE", "BLOCKS", "CACHED", "ALLOC/s", "REMOTE"],
    ["HEAP", "CACHED", "SPANS", "LIVE", "ALLOCS", "REMOTE"],
];

/// A row of a table: what the first column shows, and the numbers that all columns are sorted by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// What the row is of.
    pub(super) name: String,
    /// By column; the first is the row's number or size.
    pub(super) values: [f64; 6],
}

/// See the module header.
pub(super) struct ViewState {
    /// Number and name of the process.
    pub(super) title: String,
    /// The state that is shown.
    pub(super) shown: Option<Box<LiveState>>,
    /// The samples so far.
    pub(super) sampler: Sampler,
    /// How the process ended, once it has.
    pub(super) end: Option<String>,
    /// Whether the figures stand still.
    pub(super) is_paused: bool,
    /// Whether the help is shown.
    pub(super) has_help: bool,
    /// Whether the view ends.
    pub(super) quits: bool,
    /// Which table is shown.
    pub(super) tab: Tab,
    /// Column that each table is sorted by, and whether the other way round.
    pub(super) order: [(usize, bool); 2],
    /// First row that is shown.
    pub(super) first: usize,
}

impl ViewState {
    /// The size classes by live memory.
    pub(super) fn new(title: String) -> Self {
        Self {
            title,
            shown: None,
            sampler: Sampler::default(),
            end: None,
            is_paused: false,
            has_help: false,
            quits: false,
            tab: Tab::Classes,
            order: [(1, false), (1, false)],
            first: 0,
        }
    }

    /// Takes a new state over, unless the figures stand still. Returns whether there was anything new.
    pub(super) fn add(&mut self, state: &LiveState) -> bool {
        if self.is_paused {
            return false;
        }
        let is_new = self.sampler.add(state);
        if is_new {
            self.shown = Some(Box::new(state.clone()));
        }
        is_new
    }

    /// Does what a key asks for.
    pub(super) fn act(&mut self, action: Action) {
        let order = &mut self.order[self.tab as usize];
        match action {
            Action::Quit => self.quits = true,
            Action::Help => self.has_help = !self.has_help,
            Action::Close => self.has_help = false,
            Action::Pause => self.is_paused = !self.is_paused,
            Action::OtherTable => {
                self.tab = if self.tab == Tab::Classes { Tab::Heaps } else { Tab::Classes };
                self.first = 0;
            }
            Action::Scroll(rows) => {
                let most = self.rows().len().saturating_sub(1) as i64;
                self.first = (self.first as i64 + i64::from(rows)).clamp(0, most) as usize;
            }
            Action::NextColumn => *order = ((order.0 + 1) % COLUMNS[0].len(), false),
            Action::PreviousColumn => *order = ((order.0 + COLUMNS[0].len() - 1) % COLUMNS[0].len(), false),
            Action::SortByMemory => *order = (1, false),
            Action::SortByRate => *order = (4, false),
            Action::SortByName => *order = (0, false),
            Action::Reverse => order.1 = !order.1,
        }
    }

    /// The rows of the table, sorted.
    pub(super) fn rows(&self) -> Vec<Row> {
        let Some(state) = &self.shown else { return Vec::new() };
        let mut rows = match self.tab {
            Tab::Classes => class_rows(state, &self.sampler.rates()),
            Tab::Heaps => heap_rows(state),
        };
        let (column, is_reversed) = self.order[self.tab as usize];
        rows.sort_by(|one, other| {
            let rising = one.values[column].total_cmp(&other.values[column]);
            let wanted = if (column == 0) != is_reversed { rising } else { rising.reverse() };
            wanted.then_with(|| one.values[0].total_cmp(&other.values[0])).then(Ordering::Equal)
        });
        rows
    }
}

fn class_rows(state: &LiveState, rates: &Rates) -> Vec<Row> {
    let used = state.classes.iter().enumerate().filter(|(_, row)| row.has_figures());
    used.map(|(class, row)| {
        let is_large = row.block_bytes == 0;
        let rate = rates.by_class.get(class).copied().unwrap_or(0.0);
        let size = if is_large { f64::INFINITY } else { row.block_bytes as f64 };
        Row {
            name: if is_large { "large".into() } else { row.block_bytes.to_string() },
            values: [size, row.live as f64, row.n_live() as f64, row.cached as f64, rate, row.n_remote_frees as f64],
        }
    })
    .collect()
}

fn heap_rows(state: &LiveState) -> Vec<Row> {
    let row = |heap: &freestone::HeapStats| Row {
        name: match (heap.kind, heap.thread_id) {
            (HeapKind::Thread, id) if id != 0 => format!("{} thread {id}", heap.number),
            (kind, _) => format!("{} {}", heap.number, kind.name()),
        },
        values: [
            heap.number.into(),
            heap.cached as f64,
            heap.spans as f64,
            heap.live as f64,
            heap.n_allocations as f64,
            heap.n_remote_frees as f64,
        ],
    };
    state.heaps().iter().map(row).collect()
}

#[cfg(test)]
mod tests;
