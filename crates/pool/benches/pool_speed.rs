//! The time of a block from each kind of pool, beside a pool behind a mutex and the system's `malloc`; and the gain from a second thread.
//!
//! `cargo bench -p freestone-pool [-- ROUNDS]` prints one JSON record a line. Rounds are interleaved: within each, every subject runs
//! once. `pair` takes and gives back one block; `crowd` takes 256 blocks and gives them back in a scrambled order;
//! `threads` is the throughput of two threads over that of one by the clock, each working on crowds of its own; it needs two idle
//! processors, and the gain of two pools that share nothing shows how idle they were. For the others processor time is counted.
#![allow(unsafe_code, reason = "the pools' own interfaces are unsafe")]

use freestone_pool::{FixedPool, Magazine, NoFallback, Shape, SharedPool};
use freestone_testkit::ops::SplitMix;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::{Barrier, Mutex};
use std::time::Instant;

const BLOCK_BYTES: usize = 64;
const N_BLOCKS: usize = 4096;
const CROWD: usize = 256;
const CALLS: usize = 1 << 19;
/// Crowds per round where threads work at the same time: enough for them to overlap.
const CROWDS_TOGETHER: usize = 16;

/// Where one thread's blocks come from.
trait Subject {
    fn take(&mut self) -> NonNull<u8>;
    fn give(&mut self, block: NonNull<u8>);
}

const REFUSED: &str = "the pool has enough blocks, and gets back its own";

struct Unchecked(FixedPool<'static>);
struct Malloc;
#[derive(Clone, Copy)]
struct Behind(&'static Mutex<FixedPool<'static>>);
#[derive(Clone, Copy)]
struct Direct(&'static SharedPool<'static>);
type PerThread = Magazine<'static, 'static, NoFallback, 64>;

/// The three kinds of pool have the same calls.
macro_rules! subject {
    ($kind:ty, |$this:ident| $pool:expr) => {
        impl Subject for $kind {
            #[inline(always)]
            fn take(&mut self) -> NonNull<u8> {
                let $this = self;
                $pool.allocate().expect(REFUSED)
            }
            #[inline(always)]
            fn give(&mut self, block: NonNull<u8>) {
                let $this = self;
                // SAFETY: a block of this pool, used no more.
                unsafe { $pool.deallocate(block) }.expect(REFUSED);
            }
        }
    };
}
subject!(FixedPool<'static>, |this| this);
subject!(Behind, |this| this.0.lock().expect(REFUSED));
subject!(Direct, |this| this.0);
subject!(PerThread, |this| this);

impl Subject for Unchecked {
    #[inline(always)]
    fn take(&mut self) -> NonNull<u8> {
        self.0.allocate().expect(REFUSED)
    }
    #[inline(always)]
    fn give(&mut self, block: NonNull<u8>) {
        // SAFETY: a block of this pool, used no more.
        unsafe { self.0.deallocate_unchecked(block) };
    }
}

const LAYOUT: Layout = Layout::new::<[u64; BLOCK_BYTES / 8]>();

impl Subject for Malloc {
    #[inline(always)]
    fn take(&mut self) -> NonNull<u8> {
        // SAFETY: the layout has bytes.
        NonNull::new(black_box(unsafe { System.alloc(LAYOUT) })).expect("memory")
    }
    #[inline(always)]
    fn give(&mut self, block: NonNull<u8>) {
        // SAFETY: allocated above.
        unsafe { System.dealloc(block.as_ptr(), LAYOUT) };
    }
}

/// Processor time of this thread.
fn processor_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock writes one time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// One block repeatedly; ns for a block taken and given back.
#[inline(never)]
fn pair(subject: &mut impl Subject) -> f64 {
    let start = processor_ns();
    for _ in 0..CALLS {
        let block = black_box(subject.take());
        // SAFETY: in use, and larger than a byte.
        unsafe { block.write(1) };
        subject.give(block);
    }
    (processor_ns() - start) as f64 / CALLS as f64
}

/// Crowds that come in order and leave in another; ns for a block.
#[inline(never)]
fn crowd(subject: &mut impl Subject) -> f64 {
    let mut order: Vec<usize> = (0..CROWD).collect();
    let mut random = SplitMix(7);
    (1..CROWD).for_each(|last| order.swap(last, random.below(last + 1)));
    let mut blocks = vec![NonNull::dangling(); CROWD];
    let start = processor_ns();
    for _ in 0..CALLS / CROWD {
        for block in &mut blocks {
            *block = subject.take();
            // SAFETY: in use, and larger than a byte.
            unsafe { block.write(1) };
        }
        order.iter().for_each(|&place| subject.give(blocks[place]));
    }
    (processor_ns() - start) as f64 / CALLS as f64
}

/// Blocks a second, in millions and by the clock, of `n_threads` that each work on crowds of their own.
fn throughput<S: Subject>(n_threads: usize, make: impl Fn() -> S + Sync) -> f64 {
    let barrier = Barrier::new(n_threads);
    let worker = || {
        let mut subject = make();
        let _warm_up = crowd(&mut subject);
        barrier.wait();
        let start = Instant::now();
        for _ in 0..CROWDS_TOGETHER {
            let _ = crowd(&mut subject);
        }
        start.elapsed().as_nanos()
    };
    let ns = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a worker")).max().unwrap_or(1)
    });
    1e3 * (n_threads * CROWDS_TOGETHER * CALLS) as f64 / ns as f64
}

/// Memory that begins at a cache line, as a block with a line of its own does.
fn memory(bytes: usize) -> &'static mut [std::mem::MaybeUninit<u8>] {
    let layout = Layout::from_size_align(bytes, 128).expect("a valid layout");
    // SAFETY: the layout has bytes.
    let start = NonNull::new(unsafe { System.alloc(layout) }).expect("memory for a pool");
    // SAFETY: the memory has `bytes`, no other code has its address, and it is never freed.
    unsafe { std::slice::from_raw_parts_mut(start.cast().as_ptr(), bytes) }
}

fn fixed() -> FixedPool<'static> {
    let shape = Shape::new(BLOCK_BYTES, N_BLOCKS).expect("a valid shape");
    FixedPool::new(shape, memory(shape.region_bytes())).expect("a valid region")
}

fn shared() -> &'static SharedPool<'static> {
    let shape = Shape::new(BLOCK_BYTES, N_BLOCKS).expect("a valid shape");
    Box::leak(Box::new(SharedPool::new(shape, memory(shape.shared_region_bytes())).expect("a valid region")))
}

fn in_mutex() -> Behind {
    Behind(Box::leak(Box::new(Mutex::new(fixed()))))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const NAMES: [&str; 6] = ["fixed", "fixed-unchecked", "magazine", "shared", "fixed-in-mutex", "system-malloc"];

fn main() {
    let rounds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(15);
    let (mut checked, mut unchecked) = (fixed(), Unchecked(fixed()));
    let (mut magazine, mut direct) = (Magazine::new(shared()), Direct(shared()));
    let mut behind = in_mutex();
    for workload in ["pair", "crowd"] {
        let mut times = vec![[0.0; 6]; rounds + 1];
        for round in &mut times {
            macro_rules! run {
                ($($subject:expr),*) => {
                    if workload == "pair" { [$(pair(&mut $subject)),*] } else { [$(crowd(&mut $subject)),*] }
                };
            }
            *round = run!(checked, unchecked, magazine, direct, behind, Malloc);
        }
        let times = &times[1..];
        for (which, subject) in NAMES.iter().enumerate() {
            let ns = median(times.iter().map(|round| round[which]).collect());
            let ratio = median(times.iter().map(|round| round[which] / round[4]).collect());
            println!(
                r#"{{"workload":"{workload}","subject":"{subject}","ns_per_block":{ns:.2},"over_mutex":{ratio:.3},"rounds":{rounds}}}"#
            );
        }
    }
    let mut gains = [vec![], vec![], vec![], vec![]];
    for _ in 0..rounds {
        // A new pool for each, because the blocks that threads left in the last one's lists are mixed.
        let [two, one] = [2, 1].map(|n_threads| {
            let (pool, direct, behind) = (shared(), Direct(shared()), in_mutex());
            let magazines = throughput(n_threads, || PerThread::new(pool));
            [
                throughput(n_threads, fixed),
                magazines,
                throughput(n_threads, || direct),
                throughput(n_threads, || behind),
            ]
        });
        gains.iter_mut().zip(two.into_iter().zip(one)).for_each(|(gains, (two, one))| gains.push(two / one));
    }
    for (gains, subject) in gains.into_iter().zip(["fixed-of-its-own", NAMES[2], NAMES[3], NAMES[4]]) {
        let gain = median(gains);
        println!(r#"{{"workload":"threads","subject":"{subject}","two_over_one":{gain:.3},"rounds":{rounds}}}"#);
    }
}
