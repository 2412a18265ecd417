//! Where the heap's source states the orderings that the models use.
//!
//! A place is named by its function and its operation, not by its file: it is found wherever the function is. Each is there exactly once,
//! or the lookup panics with what is wrong. So a function or an atomic that gets another name gets it here as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{fs, iter};

/// An ordering in the heap's source.
pub(crate) struct Place {
    name: &'static str,
    function: &'static str,
    operation: &'static str,
    /// Which of the orderings from the operation on: 0, or 1 for the failure of an exchange, or for the fence behind a store or a swap.
    nth: usize,
}

macro_rules! places {
    ($($name:ident: $function:literal, $operation:literal, $nth:literal;)*) => {
        $(pub(crate) const $name: Place =
            Place { name: stringify!($name), function: $function, operation: $operation, nth: $nth };)*
        /// All of them.
        pub(crate) const PLACES: &[Place] = &[$($name),*];
    };
}

places! {
    SEND_OWNER: "owner_of_span", ".owner.load(", 0;
    ROUTE_OWNER: "owner_of_span", ".owner.load(", 0;
    NEW_SPAN_OWNER: "begin", ".owner.store(", 0;
    ADOPT_OWNER: "adopt", "span.owner.store(", 0;
    ABANDON_OWNER: "abandon", "span.owner.store(", 0;
    CENTRAL_FREE_OWNER: "free", "span.owner.load(", 0;
    ITER_FIRST: "iter", "self.all.load(", 0;
    ITER_NEXT: "iter", "links().next.load(", 0;
    CREATION_PUBLISHES: "add", "self.all.store(", 0;
    FALLBACK_LOAD: "fallback", "fallback.load(", 0;
    FALLBACK_EXCHANGE: "fallback", "fallback.compare_exchange(", 0;
    FALLBACK_REFUSED: "fallback", "fallback.compare_exchange(", 1;
    REPORT_IS_SET: "is_set", "is_set.load(", 0;
    REPORT_SET: "set", "is_set.store(", 0;
    TELLER_TAKE: "notify", "notifier.compare_exchange(", 0;
    TELLER_REFUSED: "notify", "notifier.compare_exchange(", 1;
    TELLER_RELEASE: "notify", "notifier.store(", 0;
    REACH_LOAD: "reach", "reach.load(", 0;
    REACH_STORE: "publish_reach", "reach.store(", 0;
    BACKGROUND_CREATED: "thread_created", "n_threads.fetch_add(", 0;
    BACKGROUND_GONE: "thread_gone", "n_threads.fetch_sub(", 0;
    BACKGROUND_FENCE: "is_wanted", "fence(", 0;
    BACKGROUND_COUNT: "is_wanted", "n_threads.load(", 0;
    BACKGROUND_STATE: "set_due_if_wanted", "state.load(", 0;
    BACKGROUND_START: "start", "state.compare_exchange(NONE", 0;
    BACKGROUND_START_REFUSED: "start", "state.compare_exchange(NONE", 1;
    BACKGROUND_START_FAILED: "start", "state.store(NONE", 0;
    BACKGROUND_STARTED: "start", "state.store(RUNNING", 0;
    BACKGROUND_END: "end", "state.compare_exchange(RUNNING", 0;
    BACKGROUND_END_REFUSED: "end", "state.compare_exchange(RUNNING", 1;
    BACKGROUND_ENDED: "end", "state.store(NONE", 0;
    BACKGROUND_IS_ENDING: "run", "state.load(", 0;
    WAKE: "wake", "wakes.fetch_add(", 0;
    WAKES_SEEN: "wakes", "wakes.load(", 0;
    DIRTY_ASLEEP: "wake_for_dirty", "asleep.load(", 0;
    DIRTY_WAKES: "wake_for_dirty", "asleep.swap(", 0;
    WORK_COUNTED: "wake_for_work", "wakes.fetch_add(", 0;
    WORK_FENCE: "wake_for_work", "    fence(", 0;
    WORK_ASLEEP: "wake_for_work", "asleep.load(", 0;
    WORK_WAKES: "wake_for_work", "asleep.swap(", 0;
    FALLS_ASLEEP: "sleep", "asleep.store(", 0;
    LATE_MAPPED: "get_mapped", "self.0.compare_exchange(", 0;
    LATE_FOUND: "get", "self.0.load(", 0;
    PROFILE_HEAP_SET: "set_heap", "self.heap.store(", 0;
    PROFILE_HEAP: "heap", "self.heap.load(", 0;
    STACK_STORED: "store", "entry.place.store(", 0;
    STACK_SEEN: "for_each", "entry.place.load(", 0;
    SAMPLE_PLACE_TAKEN: "insert", "entry.address.compare_exchange(", 0;
    SAMPLE_ENTERED: "insert", "entry.address.store(", 0;
    SAMPLE_FOUND: "remove", "entry.address.load(", 0;
    SAMPLE_REMOVED: "remove", "entry.address.compare_exchange(", 0;
    GUARDED_MAPPED: "map", "if is_open {\n            self.start.store(", 0;
    GUARDED_SLOTS: "slots", "self.start.load(", 0;
    GUARDED_STATE_SET: "set_state", "self.state.store(", 0;
    GUARDED_STATE: "state", "self.state.load(", 0;
    WATCH_BEGUN: "begin", "self.watch.store(", 0;
    WATCH_SEEN: "get", "self.watch.load(", 0;
    RECORDED_ADDED: "add", "self.first.compare_exchange(", 0;
    RECORDED_ALL: "all", "self.first.load(", 0;
    RECORDED_LEFT: "end", "record.is_taken.store(", 0;
    RECORDED_TAKEN: "take_unused", "record.is_taken.compare_exchange(", 0;
    TRACE_OPENED: "open", "self.state.store(OPEN", 0;
    TRACE_OPEN_FOR_A_CHUNK: "grow", "if self.state.load(", 0;
    TRACE_OPEN_AT_THE_END: "finish", "self.state.load(", 0;
    ROOM_IN_CHANGE: "set_room", "self.room[class].store(i64", 0;
    ROOM_GRANTED: "set_room", "self.granted[class].store(", 0;
    ROOM_SET: "set_room", "self.room[class].store(room", 0;
    FREES_GRANTED: "frees", "let granted = self.granted[class].load(", 0;
    FREES_ROOM: "frees", "self.room[class].load(", 0;
    PAGE_WRITER_TAKES: "update", "self.is_writing.swap(", 0;
    PAGE_WRITER_LEAVES: "update", "self.is_writing.store(", 0;
    PAGE_CREATED: "create", "    fence(", 0;
    PAGE_OFF: "end", "self.is_on.swap(", 1;
    PROFILE_SERVER_TAKES: "serve", "self.is_serving.swap(", 0;
    PROFILE_SERVER_LEAVES: "serve", "self.is_serving.store(", 0;
    PROFILE_PAGE_CREATED: "serve", "    fence(", 0;
    PROFILE_PAGE_OFF: "end", "self.look_ms.store(", 1;
    PROFILE_PAGE_MADE: "create", "magic.store(", 0;
    PROFILE_ASKED: "serve", "request.load(", 0;
    PROFILE_ANSWERED: "serve", "answered.store(", 0;
    PAGE_MADE: "begin", "words[MAGIC_AT].store(", 0;
    PAGE_KNOWN: "process_of", "words[MAGIC_AT].load(", 0;
    PAGE_BEFORE_WORDS: "write", "    fence(", 0;
    PAGE_WRITTEN: "write", "words[LATEST_AT].store(", 0;
    PAGE_LATEST: "read", "words[LATEST_AT].load(", 0;
    PAGE_AFTER_WORDS: "read", "    fence(", 0;
}

impl Place {
    /// The ordering's name, as the source states it.
    pub(crate) fn stated(&self) -> &'static str {
        static FOUND: OnceLock<BTreeMap<&'static str, String>> = OnceLock::new();
        let found = FOUND.get_or_init(|| {
            let sources = sources();
            PLACES.iter().map(|place| (place.name, place.find(&sources))).collect()
        });
        &found[self.name]
    }

    /// The ordering, for a model.
    #[cfg(loom)]
    pub(crate) fn ordering(&self) -> freestone_base::sync::Ordering {
        use freestone_base::sync::Ordering;
        match self.stated() {
            "Relaxed" => Ordering::Relaxed,
            "Acquire" => Ordering::Acquire,
            "Release" => Ordering::Release,
            "AcqRel" => Ordering::AcqRel,
            "SeqCst" => Ordering::SeqCst,
            other => panic!("{}: {other} is no ordering", self.name),
        }
    }

    fn find(&self, sources: &[String]) -> String {
        let calls: Vec<_> = sources
            .iter()
            .flat_map(|source| bodies(source, self.function))
            .filter_map(|body| body.split_once(self.operation))
            .collect();
        let [(_, call)] = calls[..] else {
            panic!("`{}` is in {} functions called `{}`, not in one", self.operation, calls.len(), self.function);
        };
        let name = call.split("Ordering::").nth(self.nth + 1).unwrap_or_default();
        name.chars().take_while(|letter| letter.is_alphanumeric()).collect()
    }
}

/// The bodies of all functions of a name in a source, as rustfmt lays them out.
fn bodies<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
    let head = format!("fn {name}");
    let body = |at: usize| {
        let rest = source[at + head.len()..].strip_prefix(['(', '<'])?;
        let line = &source[source[..at].rfind('\n').map_or(0, |end| end + 1)..];
        let indentation = &line[..line.len() - line.trim_start_matches(' ').len()];
        rest.split_once(&format!("\n{indentation}}}\n")).map(|(body, _)| body)
    };
    source.match_indices(&head).filter_map(|(at, _)| body(at)).collect()
}

/// The text of each source file of the heap, without tests, and of the tables that it maps late.
fn sources() -> Vec<String> {
    let mut left =
        ["../freestone/src", "../os/src/late.rs"].map(|part| Path::new(env!("CARGO_MANIFEST_DIR")).join(part)).to_vec();
    let files = iter::from_fn(|| {
        let path: PathBuf = left.pop()?;
        if path.is_dir() {
            left.extend(
                fs::read_dir(path).expect("the folder can be read").map(|entry| entry.expect("and its entries").path()),
            );
            return Some(None);
        }
        let is_test = path.components().any(|part| ["tests", "testing"].iter().any(|name| part.as_os_str() == *name));
        let is_source = path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") && !is_test;
        Some(is_source.then(|| fs::read_to_string(path).expect("the source can be read")))
    });
    files.flatten().collect()
}

/// Without loom, so that a name that changed is noticed before the models run.
#[test]
fn the_heap_states_every_ordering_that_the_models_use() {
    for place in PLACES {
        let name = place.stated();
        assert!(["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"].contains(&name), "{}: {name}", place.name);
    }
}
