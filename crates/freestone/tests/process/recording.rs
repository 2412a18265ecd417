//! The option `record`: threads begin and end in the trace, and a forked child has a trace of its own.
use crate::lifetimes::in_child;
use crate::{ALLOCATOR, MIB, alone};
use freestone::door;
use freestone_trace::chunk::Chunk;
use freestone_trace::{Event, Kind, What, file};
use std::alloc::{GlobalAlloc, Layout};
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

/// Sizes that no other code of the test program asks for: small ones, large ones, and those on either side of the bounds between fast paths.
const SIZES: [usize; 9] = [1237, 3331, 9973, 32_749, 32_767, 32_768, 32_771, 70_001, MIB + 5];

/// Alignments and their logarithms.
const ALIGNMENTS: [(usize, u8); 3] = [(1, 0), (64, 6), (8192, 13)];

/// Allocates and frees by each function, twice, so that the second call finds a block at hand; all bytes of zeroed blocks must be zero.
fn call_each_function() {
    for (size, align) in
        SIZES.into_iter().flat_map(|size| ALIGNMENTS.map(|(align, _)| (size, align))).chain(SIZES.map(|size| (size, 0)))
    {
        for _ in 0..2 {
            if align == 0 {
                let block = door::allocate(size);
                assert!(!block.is_null());
                // SAFETY: the block has as many bytes.
                unsafe { block.write_bytes(7, size) };
                // SAFETY: the block is live, and not used again.
                unsafe { door::free(block) };
                continue;
            }
            let layout = Layout::from_size_align(size, align).expect("a layout");
            let blocks = [
                // SAFETY: the alignments are powers of two.
                unsafe { door::allocate_aligned(size, align) },
                // SAFETY: as above.
                unsafe { door::allocate_zeroed(size, align) },
                // SAFETY: the sizes are not zero.
                unsafe { ALLOCATOR.alloc(layout) },
                // SAFETY: as above.
                unsafe { ALLOCATOR.alloc_zeroed(layout) },
            ];
            for (at, block) in blocks.into_iter().enumerate() {
                assert!(!block.is_null() && block.addr().is_multiple_of(align));
                // SAFETY: the block is live, and was written when it was zeroed.
                let is_zero = at % 2 == 0 || (0..size).all(|byte| unsafe { block.wrapping_add(byte).read() } == 0);
                assert!(is_zero, "{size} {align}");
                // SAFETY: the block has as many bytes.
                unsafe { block.write_bytes(7, size) };
            }
            for (at, block) in blocks.into_iter().enumerate() {
                if at < 2 {
                    // SAFETY: the block is live, and not used again.
                    unsafe { door::free(block) };
                } else {
                    // SAFETY: as above, and it was allocated for the layout.
                    unsafe { ALLOCATOR.dealloc(block, layout) };
                }
            }
        }
    }
}

#[test]
fn each_call_is_recorded_with_its_function_its_size_and_its_alignment() {
    let path = env::temp_dir().join(format!("freestone-recorded-calls-{}", process::id()));
    let said = alone(&[("RECORD", path.to_str().expect("a path in UTF-8")), ("BACKGROUND", "off")], || {
        call_each_function();
    });
    let Some(said) = said else { return };
    assert_eq!(said, "");
    let trace = Trace::read(&path);
    fs::remove_file(&path).expect("a file of this test");
    let count = |kind, size, align_log2| {
        let is_it = |event: &&Event| match event.what {
            What::Allocate { kind: of, size: asked, align_log2: align, block } => {
                (of, asked, align) == (kind, size as u64, align_log2) && block != 0
            }
            _ => false,
        };
        trace.events.iter().filter(is_it).count()
    };
    for size in SIZES {
        for (_, log2) in ALIGNMENTS {
            let n_aligned = if log2 == 0 { 4 } else { 2 };
            let counts = [Kind::C, Kind::CZeroed, Kind::Rust, Kind::RustZeroed].map(|kind| count(kind, size, log2));
            assert_eq!(counts, [n_aligned, 2, 2, 2], "{size} bytes, aligned to 2^{log2}");
        }
    }
}

/// Where heaps are watched, zeroed blocks come from what is at hand, if they need no alignment.
#[test]
fn every_function_keeps_to_alignment_and_zeroes_at_every_level() {
    for level in ["off", "default", "checks", "full"] {
        let said = alone(&[("HARDEN", level), ("BACKGROUND", "off")], || {
            call_each_function();
        });
        let Some(said) = said else { return };
        assert_eq!(said, "", "{level}");
    }
}

#[test]
fn a_block_that_is_freed_twice_is_handed_out_once_in_a_thread_whose_calls_are_recorded() {
    let path = env::temp_dir().join(format!("freestone-recorded-twice-{}", process::id()));
    let options = [("RECORD", path.to_str().expect("a path in UTF-8")), ("MISUSE", "report"), ("BACKGROUND", "off")];
    let said = alone(&options, || {
        let block = door::allocate(SIZES[0]);
        for _ in 0..2 {
            // SAFETY: the block is not used again. The second time is the misuse that is to be seen.
            unsafe { door::free(block) };
        }
        let again = [(); 2].map(|()| door::allocate(SIZES[0]));
        assert_ne!(again[0], again[1]);
    });
    let Some(said) = said else { return };
    assert!(said.contains("double free"), "{said}");
    fs::remove_file(&path).expect("a file of this test");
}

#[test]
fn resized_blocks_are_recorded_with_where_they_went() {
    let path = env::temp_dir().join(format!("freestone-recorded-resizes-{}", process::id()));
    let said = alone(&[("RECORD", path.to_str().expect("a path in UTF-8")), ("BACKGROUND", "off")], || {
        let mut block = door::allocate(SIZES[0]);
        for size in SIZES {
            // SAFETY: the block is live, and replaced by what is returned.
            block = unsafe { door::reallocate(block, size, 1) };
            assert!(!block.is_null());
        }
        // SAFETY: the block is live, and not used again.
        unsafe { door::free(block) };
    });
    if said.is_none() {
        return;
    }
    let trace = Trace::read(&path);
    fs::remove_file(&path).expect("a file of this test");
    let is_first = |what: What| matches!(what, What::Allocate { size, .. } if size == SIZES[0] as u64);
    let begun = trace.events.iter().position(|event| is_first(event.what)).expect("the first block");
    let What::Allocate { mut block, .. } = trace.events[begun].what else { return };
    let mut sizes = Vec::new();
    for event in &trace.events[begun..] {
        if let What::Resize { from, size, block: to } = event.what {
            if from == block {
                sizes.push(size as usize);
                block = to;
            }
        }
    }
    // A small block that stays is not looked up.
    assert!(sizes.iter().all(|size| SIZES.contains(size)) && sizes.len() >= SIZES.len() - 1, "{sizes:?}");
    assert!(trace.events.iter().any(|event| event.what == What::Free { block }));
}
