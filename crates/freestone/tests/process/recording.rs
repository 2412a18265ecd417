//! The option `record`: threads begin and end in the trace, and a forked child has a trace of its own.
use crate::alone;
use crate::lifetimes::in_child;
use freestone_trace::chunk::Chunk;
use freestone_trace::{Event, What, file};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::{env, fs, process, thread};

/// What a trace holds.
struct Trace {
    events: Vec<Event>,
    /// How many recorders wrote it.
    n_recorders: usize,
}

impl Trace {
    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).expect("a trace");
        let chunks: Vec<_> = file::chunks(&bytes).map(|chunk| chunk.expect("no damage")).collect();
        let recorders: BTreeSet<_> = chunks.iter().map(|chunk| chunk.header.recorder).collect();
        let events = chunks.iter().flat_map(Chunk::events).map(|event| event.expect("no damage")).collect();
        Self { events, n_recorders: recorders.len() }
    }

    /// The threads that allocated `wanted` bytes and freed the block.
    fn threads_with(&self, wanted: u64) -> BTreeSet<u32> {
        let is_freed = |block| self.events.iter().any(|event| event.what == What::Free { block });
        let thread = |event: &Event| match event.what {
            What::Allocate { size, block, .. } if size == wanted && is_freed(block) => Some(event.thread),
            _ => None,
        };
        self.events.iter().filter_map(thread).collect()
    }

    fn count(&self, what: What) -> usize {
        self.events.iter().filter(|event| event.what == what).count()
    }
}

/// Files in the folder of temporary files whose names start with that of `path`, which has no extension: those of children.
fn of_children(path: &Path) -> Vec<PathBuf> {
    let folder = fs::read_dir(env::temp_dir()).expect("a folder").flatten().map(|entry| entry.path());
    folder.filter(|other| other.file_stem() == path.file_name() && other.extension().is_some()).collect()
}

fn allocate(bytes: usize) {
    drop(black_box(vec![1_u8; black_box(bytes)]));
}

#[test]
fn threads_leave_their_recorders_to_others_and_a_forked_child_has_a_trace_of_its_own() {
    let path = env::temp_dir().join(format!("freestone-recorded-{}", process::id()));
    let options = [("RECORD", path.to_str().expect("a path in UTF-8")), ("BACKGROUND", "off")];
    let said = alone(&options, || {
        for _ in 0..5 {
            thread::spawn(|| allocate(4441)).join().unwrap();
        }
        allocate(5003);
        assert_eq!(in_child(|| allocate(7001)), 0);
        allocate(6007);
    });
    let Some(said) = said else { return };
    assert_eq!(said, "");
    let (parents, childs) = (Trace::read(&path), of_children(&path));
    assert_eq!(parents.threads_with(4441).len(), 5);
    assert_eq!((parents.threads_with(5003).len(), parents.threads_with(6007).len()), (1, 1));
    assert!(parents.count(What::End) >= 5 && parents.count(What::Begin) > parents.count(What::End));
    assert!(parents.n_recorders <= 3, "{} recorders for threads that ended one after the other", parents.n_recorders);
    assert_eq!(childs.len(), 1, "{childs:?}");
    let childs_trace = Trace::read(&childs[0]);
    assert!(parents.threads_with(7001).is_empty() && childs_trace.threads_with(4441).is_empty());
    assert_eq!((childs_trace.threads_with(7001).len(), childs_trace.threads_with(6007).len()), (1, 0));
    childs.iter().chain([&path]).for_each(|path| fs::remove_file(path).expect("a file of this test"));
}
