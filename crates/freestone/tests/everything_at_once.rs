//! Every function of the public interface beside every other: several threads call them in an order drawn from a seed. Under ThreadSanitizer
//! (`cargo xtask tsan`) each access is checked for an order; without it, blocks keep their contents and no heap holds a block at the end.
#![allow(unsafe_code)]
//!
//! # Safety
//! A block is used by the one thread that has it. A heap is dropped when no thread has a block of it.
#![cfg(all(target_os = "linux", not(miri)))]

use freestone::door::{self, Owner};
use freestone::options::{Harden, OPTIONS, Unit};
use freestone::profile::{self, Snapshot};
use freestone::{Freestone, Heap};
use freestone_testkit::again;
use std::alloc::{GlobalAlloc, Layout};
use std::env;
use std::ffi::c_void;
use std::fs;
use std::ptr::{self, NonNull};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[global_allocator]
static ALLOCATOR: Freestone = Freestone;

const N_THREADS: u64 = 4;

/// Calls of a thread.
const CALLS: usize = 10_000;

/// Options that let allocations, the process or profiling fail, or have the profile written again and again.
const NOT_CHANGED: [&str; 6] =
    ["limit", "limit_hard", "misuse", "heap_profile_ms", "heap_profile_allocated", "heap_profile_growth"];

/// Numbers by the rule of xorshift.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    /// Small blocks, some large, all alignments up to two pages.
    fn layout(&mut self) -> Layout {
        let size = match self.below(40) {
            0 => 1 + self.below(3 << 20),
            1..4 => 1 + self.below(100_000),
            _ => 1 + self.below(2000),
        };
        Layout::from_size_align(size, 1 << (self.below(14) * usize::from(self.below(8) == 0))).unwrap()
    }
}

/// A block of the process whose first byte and last byte are `filling`.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    filling: u8,
}

// SAFETY: only the holder of this value uses the block.
unsafe impl Send for Block {}

impl Block {
    fn new(layout: Layout, filling: u8) -> Self {
        // SAFETY: the layout has bytes.
        let start = NonNull::new(unsafe { Freestone.alloc(layout) }).expect("memory for a block");
        let mut block = Self { start, layout, filling };
        block.fill();
        block
    }

    /// Where its last byte is.
    fn last(&self) -> NonNull<u8> {
        // SAFETY: it is that long.
        unsafe { self.start.add(self.layout.size() - 1) }
    }

    fn fill(&mut self) {
        // SAFETY: it is live.
        unsafe { self.start.write(self.filling) };
        // SAFETY: as above.
        unsafe { self.last().write(self.filling) };
    }

    fn check(&self) {
        // SAFETY: it is live, and was filled.
        assert_eq!(unsafe { self.start.read() }, self.filling);
        // SAFETY: as above.
        assert_eq!(unsafe { self.last().read() }, self.filling);
        // SAFETY: it is live.
        assert!(unsafe { door::usable_size(self.start.as_ptr()) } >= self.layout.size());
        assert_eq!(door::owner(self.start.as_ptr()), Owner::Process);
    }

    fn resized(mut self, size: usize) -> Self {
        self.check();
        // SAFETY: it is live, with this layout, and the size is not zero.
        let start = unsafe { Freestone.realloc(self.start.as_ptr(), self.layout, size) };
        self.start = NonNull::new(start).expect("memory for a block");
        self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
        // SAFETY: the first byte is kept.
        assert_eq!(unsafe { self.start.read() }, self.filling);
        self.fill();
        self
    }

    fn end(self) {
        self.check();
        // SAFETY: it is live, was allocated for this layout, and is not used again.
        unsafe { Freestone.dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// What all threads use.
struct Common {
    passed_on: Mutex<Vec<Block>>,
    heap: Heap,
}

static N_CALLBACKS: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count(_in_use_bytes: usize, _argument: *mut c_void) {
    N_CALLBACKS.fetch_add(1, Ordering::Relaxed);
    drop(vec![1_u8; 100]);
}

fn set_any_option(draw: &mut Draw) {
    let option = &OPTIONS[draw.below(OPTIONS.len())];
    if NOT_CHANGED.contains(&option.key) {
        return;
    }
    let value = match option.unit {
        Unit::Words(words) => {
            let words: Vec<_> = words.split(", ").collect();
            words[draw.below(words.len())].to_owned()
        }
        Unit::Path => return,
        _ => option.bounds.1.min(option.bounds.0.max(1) << draw.below(20)).to_string(),
    };
    // Those that are read at the start alone are refused.
    let _ = Freestone.set_option(option.key, &value);
    assert!(Freestone.option(option.key).is_some());
}

fn use_a_heap(heap: &Heap, draw: &mut Draw) {
    let mut blocks = Vec::new();
    for _ in 0..draw.below(30) {
        let layout = draw.layout();
        let block = heap.allocate(layout).expect("memory for a block of a heap");
        // SAFETY: it is live, and has a byte.
        unsafe { block.write(7) };
        blocks.push((block, layout));
    }
    assert!(heap.stats().live > 0 || blocks.is_empty());
    for (block, layout) in blocks {
        // SAFETY: it is live, and was written to.
        assert_eq!(unsafe { block.read() }, 7);
        let size = 1 + draw.below(5000);
        // SAFETY: it is live, with this layout.
        let block = unsafe { heap.reallocate(block, layout, size) }.expect("memory for a block of a heap");
        assert_ne!(door::owner(block.as_ptr()), Owner::Nobody);
        // SAFETY: it is live, and not used again.
        unsafe { heap.deallocate(block) };
    }
}

fn begin_and_end_a_heap(draw: &mut Draw) {
    // SAFETY: all blocks of the heap are freed before it is dropped.
    let heap = unsafe { Heap::hardened([Harden::Off, Harden::Checks, Harden::Full][draw.below(3)]) };
    let heap = heap.expect("memory for a heap");
    let mut handle = 0_u8;
    door::set_handle(&heap, (&raw mut handle).cast());
    heap.set_limit(Some(64 << 20)).expect("an empty heap is below any limit");
    use_a_heap(&heap, draw);
    let block = heap.allocate(Layout::new::<u64>()).expect("memory for a block of a heap");
    assert_eq!(door::owner(block.as_ptr()), Owner::Heap((&raw mut handle).cast()));
}

fn profile(draw: &mut Draw) {
    match draw.below(4) {
        0 => assert!(profile::start()),
        1 => profile::stop(),
        2 => profile::write(Snapshot::Live, &mut |_| Ok(())).expect("a closure takes everything"),
        _ => profile::write_to(c"/dev/null", Snapshot::Peak).expect("the device takes everything"),
    }
}

/// One call.
fn call(draw: &mut Draw, own: &mut Vec<Block>, common: &Common) {
    let passed_on = || common.passed_on.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match draw.below(100) {
        0..40 => own.push(Block::new(draw.layout(), draw.below(255) as u8)),
        40..60 if !own.is_empty() => own.swap_remove(draw.below(own.len())).end(),
        60..70 if !own.is_empty() => {
            let block = own.swap_remove(draw.below(own.len()));
            own.push(block.resized(draw.layout().size()));
        }
        70..80 => passed_on().extend(own.pop()),
        80..88 => {
            let block = passed_on().pop();
            own.extend(block);
        }
        88 => assert!(Freestone.stats().committed > 0),
        89 => {
            assert!(Freestone.with_details(|details| details.json().to_string()).is_some_and(|text| text.len() > 100))
        }
        90 => _ = Freestone.purge(),
        91 => set_any_option(draw),
        // SAFETY: the function ignores its argument.
        92 => unsafe { Freestone.on_pressure((draw.below(4) > 0).then_some(count), ptr::null_mut()) },
        93 => begin_and_end_a_heap(draw),
        94 => use_a_heap(&common.heap, draw),
        95 => profile(draw),
        96 => {
            let (seed, rest) = (draw.below(1 << 30) as u64 | 1, own.split_off(own.len() / 2));
            let born = thread::spawn(move || {
                rest.into_iter().for_each(Block::end);
                let mut draw = Draw(seed);
                (0..20).map(|n| Block::new(draw.layout(), n)).collect::<Vec<_>>()
            });
            passed_on().extend(born.join().expect("a thread without a fault"));
        }
        97 => Freestone.report_exit(),
        _ => own.drain(own.len() / 2..).for_each(Block::end),
    }
}

#[test]
fn every_call_may_be_made_beside_every_other() {
    // SAFETY: threads free all blocks that they have allocated from it.
    let heap = unsafe { Heap::new() }.expect("memory for a heap");
    let common = Common { passed_on: Mutex::new(Vec::new()), heap };
    thread::scope(|scope| {
        for number in 1..=N_THREADS {
            let common = &common;
            scope.spawn(move || {
                let (mut draw, mut own) = (Draw(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)), Vec::new());
                (0..CALLS).for_each(|_| call(&mut draw, &mut own, common));
                own.into_iter().for_each(Block::end);
            });
        }
    });
    common.passed_on.into_inner().expect("no thread has panicked").into_iter().for_each(Block::end);
    // From the level `checks` on, freed blocks wait in a quarantine, and count as live.
    let has_quarantine = Freestone.option("harden").is_some_and(|level| level >= Harden::Checks as usize);
    assert!(common.heap.stats().live == 0 || has_quarantine);
}

/// What is read when the allocator starts is set for a process of its own, in which the test above runs.
#[test]
fn so_it_is_with_whatever_options_the_process_starts() {
    let folder = env::temp_dir().join(format!("freestone-everything-{}", std::process::id()));
    fs::create_dir(&folder).expect("a folder for what is recorded");
    let trace = folder.join("trace");
    let options: [&[(&str, &str)]; 3] = [
        &[("FREESTONE_HEAP_PROFILE", "on"), ("FREESTONE_HEAP_PROFILE_FILE", "/dev/null")],
        &[("FREESTONE_GUARD_SAMPLE", "20"), ("FREESTONE_BACKGROUND", "on")],
        &[("FREESTONE_RECORD", trace.to_str().expect("a name in characters"))],
    ];
    for level in ["off", "default", "checks", "full"] {
        for more in options {
            let mut child = again::this_program();
            child.args(["--exact", "every_call_may_be_made_beside_every_other"]).env("FREESTONE_HARDEN", level);
            let output = child.envs(more.iter().copied()).output().expect("this program runs");
            assert!(output.status.success(), "{level}, {more:?}: {output:?}");
        }
    }
    fs::remove_dir_all(folder).expect("what was recorded");
}
