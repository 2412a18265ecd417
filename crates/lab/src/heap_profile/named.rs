//! A profile whose stacks are functions, outermost first.

use crate::heap_profile::sampled::HeapProfile;
use crate::heap_profile::usage::{Amount, Measure, Usage};
use crate::show::quantity;
use crate::symbols::frame::Frame;
use crate::symbols::symbolizer::Symbolizer;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A stack of functions, outermost first.
pub(crate) type Stack = Vec<Frame>;

/// What each stack holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedProfile {
    /// Bytes between two samples on average.
    pub(crate) interval: u64,
    /// Stacks and what they hold.
    pub(crate) sites: BTreeMap<Stack, Usage>,
    /// Samples that the library could not keep; of a difference, those of the profile that lost more.
    pub(crate) lost: u64,
    /// Files without symbols on these stacks.
    unnamed_modules: Vec<String>,
}

/// Functions between a program and the allocator, by the beginning of their names: a stack ends at the function that called them.
const ALLOCATING: [&str; 14] = [
    "operator new",
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "alloc::alloc::",
    "<alloc::alloc::Global",
    "alloc::raw_vec::",
    "__rust_alloc",
    "__rustc::__rust_alloc",
    "freestone",
];

/// The library's file: its own functions are of no interest.
const LIBRARY: &str = "libfreestone";

fn is_allocating(frame: &Frame) -> bool {
    let in_library = frame.module.rsplit('/').next().is_some_and(|file| file.starts_with(LIBRARY));
    let name = frame.function.as_str();
    in_library
        || ALLOCATING.iter().any(|allocating| {
            name.strip_prefix(allocating).is_some_and(|rest| {
                allocating.ends_with(':') || !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
            })
        })
}

impl NamedProfile {
    /// Names all stacks of a dump.
    pub(crate) fn new(profile: &HeapProfile) -> Self {
        let mut symbols = Symbolizer::new(profile.mappings.clone());
        let mut sites = BTreeMap::<Stack, Usage>::new();
        for sample in &profile.samples {
            let stack = named_stack(&mut symbols, &sample.stack);
            let usage = sites.entry(stack).or_default();
            *usage = *usage + sample.usage;
        }
        Self { interval: profile.interval, sites, lost: profile.lost, unnamed_modules: symbols.unnamed_modules() }
    }

    /// What the reader has to know of the figures and the names: that samples were lost, or that files of these stacks have no symbols.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let files = self.unnamed_modules.join(", ");
        let of_lost = (self.lost > 0).then(|| {
            let n_lost = quantity::count(self.lost);
            format!(
                "warning: samples lost: {n_lost}. The figures lack what these stand for; a larger interval loses fewer"
            )
        });
        let of_unnamed = (!files.is_empty()).then(|| {
            format!(
                "warning: no symbols in {files}: functions there are shown as offsets; install their debugging symbols"
            )
        });
        of_lost.into_iter().chain(of_unnamed).collect()
    }

    /// What all stacks hold together.
    pub(crate) fn sum(&self) -> Usage {
        self.sites.values().fold(Usage::default(), |sum, &usage| sum + usage)
    }

    /// What this profile has more than `before`; negative where it has less. Stacks that hold the same are left out.
    pub(crate) fn minus(&self, before: &Self) -> Self {
        let mut sites = self.sites.clone();
        for (stack, &usage) in &before.sites {
            let change = sites.entry(stack.clone()).or_default();
            *change = *change - usage;
        }
        sites.retain(|_, usage| *usage != Usage::default());
        let mut unnamed_modules = [&self.unnamed_modules[..], &before.unnamed_modules[..]].concat();
        unnamed_modules.sort();
        unnamed_modules.dedup();
        Self { interval: self.interval, sites, lost: self.lost.max(before.lost), unnamed_modules }
    }

    /// The stacks that hold anything of one measure, and what.
    pub(crate) fn of(&self, measure: Measure) -> impl Iterator<Item = (&Stack, Amount)> {
        let amount = move |(stack, usage): (_, &Usage)| (stack, usage.of(measure));
        self.sites.iter().map(amount).filter(|(_, amount)| *amount != Amount::default())
    }
}

/// The functions of a stack of return addresses, outermost first, without those of the allocator at its inner end.
pub(crate) fn named_stack(symbols: &mut Symbolizer, addresses: &[u64]) -> Stack {
    let named: Vec<Rc<[Frame]>> = addresses.iter().map(|&address| symbols.frames(address)).collect();
    let frames: Vec<&Frame> = named.iter().flat_map(|frames| frames.iter()).collect();
    // A stack of nothing else keeps its innermost function.
    let from = frames.iter().position(|frame| !is_allocating(frame)).unwrap_or(0);
    frames[from..].iter().rev().map(|&frame| frame.clone()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A profile of stacks as text, `main;work`, with live and total bytes, one block each.
    pub(crate) fn profile(sites: &[(&str, i64, i64)]) -> NamedProfile {
        let frame = |name: &str| Frame { function: name.into(), file: None, line: 0, module: "/bin/x".into() };
        let amount = |bytes| Amount { blocks: i64::from(bytes != 0), bytes };
        let site = |&(stack, live, total): &(&str, i64, i64)| {
            let stack: &str = stack;
            (stack.split(';').map(frame).collect(), Usage { live: amount(live), total: amount(total) })
        };
        NamedProfile { interval: 512, sites: sites.iter().map(site).collect(), lost: 0, unnamed_modules: Vec::new() }
    }

    #[test]
    fn a_difference_has_what_changed() {
        let (before, after) =
            (profile(&[("a", 10, 10), ("b", 5, 5)]), profile(&[("a", 30, 30), ("b", 5, 5), ("c", 1, 1)]));
        let changed = after.minus(&before);
        let bytes: Vec<_> =
            changed.of(Measure::Live).map(|(stack, held)| (stack[0].function.clone(), held.bytes)).collect();
        assert_eq!(bytes, [("a".to_owned(), 20), ("c".to_owned(), 1)]);
        assert_eq!(before.minus(&after).sum().live.bytes, -21);
    }

    #[test]
    fn lost_samples_are_a_warning_also_of_a_difference() {
        let lossy = NamedProfile { lost: 345, ..profile(&[("a", 10, 10)]) };
        let whole = profile(&[("a", 30, 30)]);
        for profile in [&lossy, &lossy.minus(&whole), &whole.minus(&lossy)] {
            assert!(profile.warnings()[0].contains("samples lost: 345"), "{:?}", profile.warnings());
        }
        assert!(whole.warnings().is_empty());
    }

    #[test]
    fn functions_that_only_allocate_are_told_from_others() {
        let is = |function: &str, module: &str| {
            is_allocating(&Frame { function: function.into(), module: module.into(), ..Frame::default() })
        };
        assert!(is("operator new(unsigned long)", "/lib/libstdc++.so.6"));
        assert!(is("malloc", "") && is("alloc::raw_vec::RawVec<T>::grow", "") && is("anything", "/x/libfreestone.so"));
        assert!(!is("malloc_wrapper", "") && !is("main", "/bin/freestone") && !is("callocate", ""));
    }
}
