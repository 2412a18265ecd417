//! The whole heap under schedules: the real code of `thread`, `central` and `page` over the fake kernel. At every operation on shared memory and
//! every call of the kernel another thread may run (`--cfg shuttle`).
//!
//! ```text
//!  seed ─▶ a world: options, limits, the kinds of steps, how often another thread runs
//!       ─▶ 2 to 4 threads: start, allocate, free each other's blocks, make and delete heaps, purge, fork, exit
//!       ─▶ everything freed, every heap ended: no block out of its span, no page lost, every invariant holds
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `schedules` | seeds, the scheduler, the campaign |
//! | `world` | what the threads share, and what the program owns: the shadow |
//! | `actor` | what a thread does |
//!
//! A violation panics; the message begins with the seed that reproduces it: `FREESTONE_MODEL_SEED=n cargo xtask shuttle`.
//! Memory orderings are not modelled (loom's models do that), nor data races as such: a race shows in what it breaks.
#![allow(unsafe_code)]
//!
//! # Safety
//! All threads of a model run on one thread of the operating system. `world` ensures that they use blocks and heaps as the contracts require.

mod actor;
mod world;

use freestone_base::sync::scheduled;
use freestone_testkit::ops::SplitMix;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::string::String;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::vec::Vec;
use std::{env, format, fs, println};
use world::{Seams, Stage};

std::thread_local! {
    /// The seed of the execution under way.
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// Runs one execution per seed; whenever a thread lets others run, picks one of the others at random.
struct BySeed {
    seeds: std::ops::Range<u64>,
    ends: Instant,
    random: SplitMix,
}

impl Scheduler for BySeed {
    fn new_execution(&mut self) -> Option<Schedule> {
        let seed = self.seeds.next().filter(|_| Instant::now() < self.ends)?;
        SEED.set(seed);
        self.random = SplitMix(seed);
        Some(Schedule::new(seed))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, _is_yielding: bool) -> Option<TaskId> {
        let others: Vec<_> = runnable.iter().map(|task| task.id()).filter(|id| Some(*id) != current).collect();
        if others.is_empty() { current } else { Some(others[self.random.below(others.len())]) }
    }

    fn next_u64(&mut self) -> u64 {
        self.random.next_u64()
    }
}

/// Plays the scenario of each seed until the time is over. Returns how many were played, or the violation and its seed.
fn campaign(seams: Seams, seeds: std::ops::Range<u64>, time: Duration) -> Result<usize, String> {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 19;
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.max_steps = shuttle::MaxSteps::FailAfter(3_000_000);
    config.silence_warnings = true;
    let scheduler = BySeed { seeds, ends: Instant::now() + time, random: SplitMix(0) };
    let log = env::var_os("FREESTONE_MODEL_LOG");
    let runner = shuttle::Runner::new(scheduler, config);
    let played = catch_unwind(AssertUnwindSafe(|| {
        runner.run(move || {
            if let Some(log) = &log {
                // For a model that ends the whole process.
                let _ = fs::write(log, format!("{seams:?} {}\n", SEED.get()));
            }
            scenario(seams, SEED.get());
        })
    }));
    scheduled::end();
    played.map_err(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(|text| String::from(*text)));
        format!("seed {}: {}", SEED.get(), message.unwrap_or_default())
    })
}

/// One execution: the whole of the module header's drawing.
fn scenario(seams: Seams, seed: u64) {
    let mut random = SplitMix(seed.wrapping_mul(0x9E37_79B9).wrapping_add(seams as u64));
    let stage = Arc::new(Stage::draw(seams, &mut random));
    let chance = [2, 4, 16, 64, 256][random.below(5)];
    scheduled::begin(chance, seed);
    let actors: Vec<_> = (0..stage.n_threads)
        .map(|_| {
            let (stage, seed) = (Arc::clone(&stage), random.next_u64());
            shuttle::thread::spawn(move || {
                let life = catch_unwind(AssertUnwindSafe(|| actor::live(&stage, seed)));
                stage.left();
                match life {
                    // The thread does not exist in the child.
                    Err(panic) if panic.is::<scheduled::Vanished>() => {}
                    Err(panic) => resume_unwind(panic),
                    Ok(()) => {}
                }
            })
        })
        .collect();
    let lived: Vec<_> = actors.into_iter().map(shuttle::thread::JoinHandle::join).collect();
    scheduled::end();
    for life in lived {
        if let Err(panic) = life {
            resume_unwind(panic);
        }
    }
    stage.settle();
}

/// Plays a short campaign, or the one that the environment selects: `FREESTONE_MODEL_SECONDS`, `FREESTONE_MODEL_SEED`, `FREESTONE_MODEL_FROM`.
fn play(seams: Seams) {
    let number = |key| env::var(key).ok().and_then(|text| text.parse::<u64>().ok());
    let (seeds, time) = match number("FREESTONE_MODEL_SEED") {
        Some(seed) => (seed..seed + 1, Duration::MAX / 4),
        None => {
            let from = number("FREESTONE_MODEL_FROM").unwrap_or(0);
            (from..u64::MAX, Duration::from_secs(number("FREESTONE_MODEL_SECONDS").unwrap_or(2)))
        }
    };
    let begun = Instant::now();
    match campaign(seams, seeds, time.min(Duration::from_secs(1 << 30))) {
        Ok(played) => println!("{seams:?}: {played} schedules in {:.0} s", begun.elapsed().as_secs_f64()),
        Err(violation) => {
            panic!("{seams:?}: {violation} ({:.1} s)", begun.elapsed().as_secs_f64())
        }
    }
}

#[test]
fn threads_that_free_each_others_blocks_lose_none() {
    play(Seams::Threads);
}

#[test]
fn heaps_are_deleted_whatever_is_on_its_way() {
    play(Seams::Heaps);
}

#[test]
fn a_parent_goes_on_after_a_fork() {
    play(Seams::Parents);
}

#[test]
fn a_child_goes_on_without_the_threads_that_did_not_come_along() {
    play(Seams::Children);
}

#[test]
fn memory_that_is_being_given_back_makes_no_allocation_fail() {
    play(Seams::Limits);
}

#[test]
fn everything_at_once() {
    play(Seams::All);
}
