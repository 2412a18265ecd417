//! How long allocation takes, beside rlsf and talc, in one process and interleaved round by round.
//!
//! `cargo bench -p freestone-tlsf --bench tlsf_speed [-- ROUNDS]` prints one JSON record a line: a workload, an allocator, the
//! median ns an operation, and the median over rounds of its time divided by Freestone's in the same round.
#![allow(unsafe_code, reason = "the allocators' own interfaces are unsafe")]

mod subjects;

use freestone_testkit::ops::SplitMix;
use std::hint::black_box;
use std::ptr::NonNull;
use std::time::Instant;
use subjects::{Footered, Freestone, Heap, Rlsf, Talc, Unchecked, region};

const REGION_BYTES: usize = 64 << 20;

/// Operations in a round: few, so that a disturbance of the machine affects few rounds, or all heaps alike.
const PAIRS: usize = 20_000;
const STEPS: usize = 50_000;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds of one of the `n` operations that `work` does.
fn time_of_one(n: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / n as f64
}

/// A heap and the blocks it has given out to [`Subject::mix`], alive through all rounds.
struct Subject<H> {
    heap: H,
    slots: Vec<Option<(NonNull<u8>, usize)>>,
    random: SplitMix,
}

impl<H: Heap> Subject<H> {
    fn new() -> Self {
        Self { heap: H::over(region(REGION_BYTES)), slots: vec![None; 4096], random: SplitMix(0xC0FFEE) }
    }

    /// Allocates and frees one block repeatedly: ns a pair.
    #[inline(never)]
    fn pairs(&mut self, bytes: usize) -> f64 {
        time_of_one(PAIRS, || {
            for _ in 0..PAIRS {
                let block = self.heap.allocate(black_box(bytes));
                self.heap.deallocate(black_box(block), bytes);
            }
        })
    }

    /// 4096 slots, 16 to 4111 bytes: each step frees a random slot's block or fills an empty one.
    #[inline(never)]
    fn mix(&mut self) -> f64 {
        time_of_one(STEPS, || {
            for _ in 0..STEPS {
                let bits = self.random.next_u64();
                let slot = &mut self.slots[(bits & 4095) as usize];
                match slot.take() {
                    Some((block, bytes)) => self.heap.deallocate(block, bytes),
                    None => {
                        let bytes = 16 + (bits >> 32 & 4095) as usize;
                        *slot = Some((self.heap.allocate(bytes), bytes));
                    }
                }
            }
        })
    }

    fn run(&mut self, bytes: Option<usize>) -> f64 {
        match bytes {
            Some(bytes) => self.pairs(bytes),
            None => self.mix(),
        }
    }
}

/// One heap of each kind.
struct Heaps {
    freestone: Subject<Freestone>,
    unchecked: Subject<Unchecked>,
    footered: Subject<Footered>,
    rlsf: Subject<Rlsf>,
    talc: Subject<Talc>,
}

const NAMES: [&str; 5] = [Freestone::NAME, Unchecked::NAME, Footered::NAME, Rlsf::NAME, Talc::NAME];

/// Runs a workload on each heap, starting with another one each round; times in the order of [`NAMES`].
fn round(heaps: &mut Heaps, number: usize, bytes: Option<usize>) -> [f64; 5] {
    let mut times = [0.0; 5];
    for turn in 0..5 {
        let which = (turn + number) % 5;
        times[which] = match which {
            0 => heaps.freestone.run(bytes),
            1 => heaps.unchecked.run(bytes),
            2 => heaps.footered.run(bytes),
            3 => heaps.rlsf.run(bytes),
            _ => heaps.talc.run(bytes),
        };
    }
    times
}

fn main() {
    let rounds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(400);
    let mut heaps = Heaps {
        freestone: Subject::new(),
        unchecked: Subject::new(),
        footered: Subject::new(),
        rlsf: Subject::new(),
        talc: Subject::new(),
    };
    let kib = |kib: usize| (format!("pair-{kib}KiB"), Some(kib << 10));
    let workloads = [kib(1), kib(10), kib(100), kib(500), ("mix-16-4111".to_owned(), None)];
    let mut freestone_pairs = Vec::new();
    for (name, bytes) in workloads {
        let _warm_up: Vec<_> = (0..5).map(|number| round(&mut heaps, number, bytes)).collect();
        let times: Vec<_> = (0..rounds).map(|number| round(&mut heaps, number, bytes)).collect();
        for (which, allocator) in NAMES.iter().enumerate() {
            let ns = median(times.iter().map(|round| round[which]).collect());
            let ratio = median(times.iter().map(|round| round[which] / round[0]).collect());
            println!(
                r#"{{"workload":"{name}","allocator":"{allocator}","ns_per_op":{ns:.2},"over_freestone":{ratio:.3},"rounds":{rounds}}}"#
            );
        }
        if bytes.is_some() {
            freestone_pairs.push(median(times.iter().map(|round| round[0]).collect()));
        }
    }
    let most = freestone_pairs.iter().copied().fold(f64::MIN, f64::max);
    let least = freestone_pairs.iter().copied().fold(f64::MAX, f64::min);
    println!(r#"{{"workload":"pair-flatness","allocator":"freestone","max_over_min":{:.3}}}"#, most / least);
}
