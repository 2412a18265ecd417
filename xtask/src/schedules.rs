//! `cargo xtask shuttle`: runs the model of the whole heap under schedules, and checks that it finds faults.

use crate::process::{cargo, run, target};
use crate::scratch::{Outcome, Scratch, outcome, replaced};
use anyhow::{Result, bail};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// A fault, which the heap once had unless a comment says otherwise, and the changes that bring it in.
struct Fault {
    what: &'static str,
    /// The test that has to find it.
    test: &'static str,
    changes: &'static [(&'static str, &'static str, &'static str)],
}

const FAULTS: &[Fault] = &[
    Fault {
        what: "an explicit heap adopts spans that others have blocks of",
        test: "heaps_are_deleted_whatever_is_on_its_way",
        changes: &[(
            "crates/freestone/src/thread/refill.rs",
            "own.holdings().is_none() && own.spans().adopt(",
            "own.spans().adopt(",
        )],
    },
    Fault {
        what: "blocks of an explicit heap wait in the remote-free buffer of the thread that freed them",
        test: "heaps_are_deleted_whatever_is_on_its_way",
        changes: &[(
            "crates/freestone/src/thread/route.rs",
            "let is_buffered = !generation.is_explicit() && generation != Generation::ABANDONED;",
            "let is_buffered = generation != Generation::ABANDONED;",
        )],
    },
    Fault {
        what: "a batch overwrites the bin that the decay tick has filled meanwhile",
        test: "threads_that_free_each_others_blocks_lose_none",
        changes: &[(
            "crates/freestone/src/thread/bins.rs",
            "head.set(batch.link(head.get(), self.key()));",
            "head.set(batch.link(ptr::null_mut(), self.key()));",
        )],
    },
    // The heap never had it: it shows that the model has worlds in which spans belong to all threads.
    Fault {
        what: "a thread takes blocks out of a span of all threads without the lock of its class",
        test: "threads_that_free_each_others_blocks_lose_none",
        changes: &[(
            "crates/freestone/src/central.rs",
            "let lists = self.classes[class].lock();\n        loop {",
            "let lists = unsafe { &*core::ptr::from_ref(&*self.classes[class].lock()) };\n        loop {",
        )],
    },
    // A heap without a gate once became one with a gate after the fork took the gates; now a record is of one kind for good. To have the fault
    // back, the fork must not take the registry's lock, which keeps new records out of it, and the lock must not check its state at release.
    Fault {
        what: "a fork releases the gate of a heap that was made after it took the gates",
        test: "a_parent_goes_on_after_a_fork",
        changes: &[
            ("crates/freestone/src/thread/life.rs", "        self.registry.acquire_raw();\n", ""),
            ("crates/freestone/src/thread/life.rs", "        self.registry.release_raw(forker);\n", ""),
            (
                "crates/base/src/lock.rs",
                "if self.word.state.load(Ordering::Relaxed) & FORK == 0 {\n            return;\n        }\n        ranks::",
                "ranks::",
            ),
        ],
    },
    Fault {
        what: "a run is in a list before the page map says that it is free",
        test: "threads_that_free_each_others_blocks_lose_none",
        changes: &[
            (
                "crates/freestone/src/page/freed.rs",
                "        unsafe { self.layout().map.set_one(page, Entry::CACHED) };\n",
                "",
            ),
            (
                "crates/freestone/src/page/freed.rs",
                "self.freed.put(page, pages, record);\n            self.ahead",
                "self.freed.put(page, pages, record);\n            unsafe { self.layout().map.set_one(page, Entry::CACHED) };\n            self.ahead",
            ),
            (
                "crates/freestone/src/page/freed.rs",
                "self.free_soon(page, record, now);",
                "unsafe { self.layout().map.set_one(page, Entry::CACHED) };\n            self.free_soon(page, record, now);",
            ),
        ],
    },
    Fault {
        what: "blocks that an allocation does not take back are lost",
        test: "threads_that_free_each_others_blocks_lose_none",
        changes: &[(
            "crates/freestone/src/thread/drain.rs",
            "        blocks = take_back_some(own, blocks, most);\n",
            "        blocks = take_back_some(own, blocks, most);\n        blocks = InTransit::NONE;\n",
        )],
    },
    Fault {
        what: "an allocation fails at the limit while memory is being purged",
        test: "memory_that_is_being_given_back_makes_no_allocation_fail",
        changes: &[("crates/freestone/src/page/limits.rs", "limits.await_purges(state.usage(), more)", "false")],
    },
    Fault {
        what: "a span is listed as empty before the page map says that it is nobody's",
        test: "threads_that_free_each_others_blocks_lose_none",
        changes: &[(
            "crates/freestone/src/page/emptied.rs",
            "        span.set_entries(Entry::NONE);\n        self.free_soon(span.page(), &span, self.now());\n",
            "        self.free_soon(span.page(), &span, self.now());\n        span.set_entries(Entry::NONE);\n",
        )],
    },
    Fault {
        what: "a block comes out of its span without its trailer, which was purged",
        test: "threads_that_free_each_others_blocks_lose_none",
        changes: &[(
            "crates/freestone/src/thread/watched/allocate.rs",
            "if straddles(start.addr(), bytes, os_page_bytes) {",
            "if false {",
        )],
    },
    Fault {
        what: "who takes the page heap's lock does not free what is listed as empty",
        test: "threads_that_free_each_others_blocks_lose_none",
        changes: &[("crates/freestone/src/page/emptied.rs", "if self.emptied.pages() != Pages::ZERO {", "if false {")],
    },
    Fault {
        what: "a large block counts as in use while a thread closes it",
        test: "a_child_goes_on_without_the_threads_that_did_not_come_along",
        changes: &[
            (
                "crates/freestone/src/page/address_quarantine.rs",
                "        begin_close(&mut state, run);\n        for _",
                "        for _",
            ),
            (
                "crates/freestone/src/page/address_quarantine.rs",
                "                Ok(()) => {\n",
                "                Ok(()) => {\n                    begin_close(&mut state, run);\n",
            ),
            (
                "crates/freestone/src/page/address_quarantine.rs",
                "        state.runs.end_quarantine(run.first);\n        state.restore_large(run.first);\n        self.end_close(&mut state, run);\n",
                "",
            ),
        ],
    },
];

/// The arguments with which cargo runs the models; `debug_assertions` stay on.
const TEST: [&str; 5] = ["test", "--package", "freestone", "--lib", "testing::schedules"];

/// The arguments with which cargo builds them.
const BUILD: [&str; 5] = ["test", "--package", "freestone", "--lib", "--no-run"];

fn told(command: &mut Command, seconds: u64, seed: Option<u64>, from: u64) -> &mut Command {
    command.env("FREESTONE_MODEL_SECONDS", seconds.to_string()).env("FREESTONE_MODEL_FROM", from.to_string());
    if let Some(seed) = seed {
        command.env("FREESTONE_MODEL_SEED", seed.to_string());
    }
    command.env("FREESTONE_MODEL_LOG", target().join("shuttle.seed")).env("RUST_BACKTRACE", "0")
}

/// Runs each model for this many seconds, or with one seed.
pub(crate) fn play(seconds: u64, seed: Option<u64>, from: u64) -> Result<()> {
    let mut command = cargo(&TEST);
    command.args(["--", "--nocapture", "--test-threads", "1"]);
    command.env("RUSTFLAGS", "--cfg shuttle").env("CARGO_TARGET_DIR", target().join("shuttle"));
    // A seed says where a failure is; nobody reads a backtrace.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    run(told(&mut command, seconds, seed, from))
}

/// The short run that is part of `cargo xtask test`.
pub(crate) fn short() -> Result<()> {
    play(3, None, 0)
}

/// Reintroduces each fault, and prints what the model reports and after how many schedules.
pub(crate) fn put_back(seconds: u64) -> Result<()> {
    let scratch = Scratch::copy()?;
    let mut n_missed = 0;
    for fault in FAULTS {
        let begun = Instant::now();
        let said = with_changes(&scratch, fault.changes, |scratch| {
            // Building does not count towards the time.
            if let Outcome::Failed(text) = outcome(&mut scratch.cargo("shuttle", &BUILD), Duration::from_secs(3600))? {
                bail!("does not compile:\n{text}");
            }
            let mut command = scratch.cargo("shuttle", &TEST[..4]);
            let name = format!("testing::schedules::{}", fault.test);
            command.args([&name, "--", "--exact", "--nocapture", "--test-threads", "1"]);
            outcome(told(&mut command, seconds, None, 0), Duration::from_secs(seconds + 300))
        })?;
        let seed = fs::read_to_string(target().join("shuttle.seed")).unwrap_or_default();
        match said {
            Outcome::Failed(text) => {
                let line = text.lines().find(|line| line.contains(": seed "));
                println!(
                    "found: {}: {}",
                    fault.what,
                    line.map_or_else(|| format!("the process died with {seed}"), str::to_owned)
                );
            }
            Outcome::TooLong => println!("found: {}: it never ended with {seed}", fault.what),
            Outcome::Passed => {
                n_missed += 1;
                println!("MISSED: {} ({:.0} s)", fault.what, begun.elapsed().as_secs_f64());
            }
        }
    }
    if n_missed > 0 {
        bail!("the model misses {n_missed} of {} faults", FAULTS.len());
    }
    Ok(())
}

fn with_changes<R>(
    scratch: &Scratch,
    changes: &[(&str, &str, &str)],
    check: impl FnOnce(&Scratch) -> Result<R>,
) -> Result<R> {
    let Some(((file, from, to), rest)) = changes.split_first() else { return check(scratch) };
    let text = replaced(&fs::read_to_string(scratch.path(file))?, from, to)?;
    scratch.with(file, &text, |scratch| with_changes(scratch, rest, check))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::root;

    #[test]
    fn every_fault_can_be_put_back() {
        for (file, from, to) in FAULTS.iter().flat_map(|fault| fault.changes) {
            let text = fs::read_to_string(root().join(file)).unwrap_or_else(|_| panic!("{file} does not exist"));
            assert!(replaced(&text, from, to).is_ok(), "{file} does not contain `{from}` exactly once");
        }
    }
}
