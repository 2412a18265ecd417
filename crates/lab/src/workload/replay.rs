//! The calls of a recorded program, repeated: same sizes, same order, same threads.
//!
//! A plan (`crate::trace::plan`) says what each thread does. It is read in small parts into memory that is mapped for that, so nothing but the calls of the trace
//! reaches the allocator. What the program did between its calls is left out, but for what it wrote into its blocks.
//!
//! ```text
//!  plan ─read─▶ thread 0 ─▶ slots: the address of each live block ◀─ thread 1 ◀─read─ plan
//!                  └──────── progress: records done, for those who wait ───────┘
//! ```
//!
//! Source: the trace. Does not show: the time that the program needs besides, and which blocks it used together.
//!
//! # Safety
//! A slot has a block from its allocation to its free: the plan says so, which was made from a trace in which every free follows an allocation, and the threads wait
//! for each other as the plan says. Mapped memory is zero, and unmapped by nobody while threads run.
#![allow(unsafe_code)]

mod aligned;
mod density;
mod mapped;
mod progress;
mod shipped;

use crate::scratch_file::ScratchFile;
use crate::trace::plan::{HEADER_BYTES, MAGIC, Op, RECORD_BYTES, Record};
use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::failure::{broken, corrupt, exhausted};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use aligned::{aligned, aligned_zeroed, moved};
use density::Density;
use mapped::mapped;
use progress::Progress;
use std::ffi::c_void;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

pub(crate) use shipped::{GCC, PYTHON, REDIS, SQLITE, main as plan_main};

/// The workload of `freestone replay`. It is in no list, because it needs a plan.
pub(crate) static WORKLOAD: Workload = Workload {
    name: "replay",
    models: "a recorded program",
    hides: "what the program does between its calls",
    shows: PrimaryFigure::Time,
    params: &[
        Param::fixed("plan", 0, "the number of the plan's file"),
        Param::fixed(
            "touch",
            Touch::All as u64,
            "what is written into a block: 0 nothing, 1 its first byte, 2 all of it",
        ),
        Param::fixed("ops", 1, "times that the trace is repeated").at_least_one(),
    ],
    run: |params, meter| {
        let path = ScratchFile::path_of(PLAN, params.get("plan") as u32);
        match File::open(&path) {
            Ok(plan) => run(plan, params, meter),
            Err(error) => broken(&format!("the plan {} cannot be read: {error}", path.display())),
        }
    },
    run_on_null: None,
};

/// The name of the files of plans.
pub(crate) const PLAN: &str = "plan";

/// What is written into a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Touch {
    Nothing = 0,
    First = 1,
    All = 2,
}

/// Records that a thread reads at once.
const PART: usize = 2048;

/// What all threads of a replay share.
struct Replay {
    plan: File,
    /// Offset and number of each thread's records.
    threads: &'static [[AtomicU64; 2]],
    progress: &'static [Progress],
    slots: &'static [AtomicPtr<u8>],
    touch: Touch,
    /// Bytes of live blocks, now and at most.
    live: AtomicU64,
    peak: AtomicU64,
    checksum: AtomicU64,
}

/// Replays the plan in a file.
fn run(plan: File, params: &Params, meter: &mut Meter) -> Outcome {
    let (replay, operations) = match Replay::of(plan, params) {
        Ok(opened) => opened,
        Err(error) => broken(&format!("the plan cannot be read: {error}")),
    };
    let times = params.get("ops").max(1);
    let (density, at_peak) = meter.section(|_| {
        let mut density = Density::begin();
        for _ in 0..times {
            replay.run_once(&mut density);
        }
        density.mean_and_at_peak()
    });
    Outcome::new(operations * times, replay.checksum.load(Ordering::Relaxed))
        .with("replayed_peak_live_bytes", replay.peak.load(Ordering::Relaxed) as f64)
        .with("live / RSS, mean", density)
        .with("live / RSS at the peak of RSS", at_peak)
}

impl Replay {
    fn of(plan: File, params: &Params) -> std::io::Result<(&'static Self, u64)> {
        let mut header = [0; HEADER_BYTES];
        plan.read_exact_at(&mut header, 0)?;
        let number = |at: usize| header[8 * at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if number(0) != MAGIC {
            return Err(std::io::Error::other("it is no plan"));
        }
        let (n_threads, n_slots, operations) = (number(1) as usize, number(2) as usize, number(4));
        let threads: &'static [[AtomicU64; 2]] = mapped(n_threads)?;
        for (at, thread) in threads.iter().enumerate() {
            for (word, number) in thread.iter().enumerate() {
                let mut bytes = [0; 8];
                plan.read_exact_at(&mut bytes, (HEADER_BYTES + 16 * at + 8 * word) as u64)?;
                number.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
            }
        }
        let touch = match params.get("touch") {
            0 => Touch::Nothing,
            1 => Touch::First,
            _ => Touch::All,
        };
        let replay = Self {
            plan,
            threads,
            progress: mapped(n_threads)?,
            slots: mapped(n_slots)?,
            touch,
            live: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            checksum: AtomicU64::new(0),
        };
        // So that none of their memory becomes resident while it is measured.
        replay.slots.iter().for_each(|slot| slot.store(ptr::null_mut(), Ordering::Relaxed));
        Ok((Box::leak(Box::new(replay)), operations))
    }

    /// Replays all threads, then frees what is left.
    fn run_once(&'static self, density: &mut Density) {
        self.progress.iter().for_each(Progress::restart);
        if !self.threads.is_empty() {
            self.run_thread(0, Some(density));
        }
        for progress in self.progress.iter() {
            progress.wait_for_the_end();
        }
        for slot in self.slots {
            let block = slot.swap(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: null, or the block that is left in the slot; no thread runs any more.
            unsafe { libc::free(block.cast()) };
        }
        self.live.store(0, Ordering::Relaxed);
    }

    fn run_thread(&'static self, thread: usize, mut density: Option<&mut Density>) {
        let buffer: &'static [AtomicU64] = match mapped(PART * RECORD_BYTES / 8) {
            Ok(buffer) => buffer,
            Err(_) => exhausted(PART * RECORD_BYTES),
        };
        let [offset, n_records] = [0, 1].map(|at: usize| self.threads[thread][at].load(Ordering::Relaxed));
        let (mut done, mut checksum) = (0, 0_u64);
        let (step, mut sampled) = (density::step(n_records), 0);
        while done < n_records {
            let n = (n_records - done).min(PART as u64) as usize;
            let start = buffer.as_ptr().cast_mut().cast::<u8>();
            // SAFETY: the buffer is mapped, this thread's alone, and has room for `PART` records of bytes.
            let bytes = unsafe { std::slice::from_raw_parts_mut(start, n * RECORD_BYTES) };
            if self.plan.read_exact_at(bytes, offset + done * RECORD_BYTES as u64).is_err() {
                broken("the plan is cut short");
            }
            for record in bytes.chunks_exact(RECORD_BYTES) {
                let Some(record) = record.first_chunk().and_then(Record::read) else { broken("the plan is damaged") };
                checksum = checksum.wrapping_add(self.take(&record));
                done += 1;
                self.progress[thread].publish(done as u32);
            }
            if let Some(density) = density.as_deref_mut().filter(|_| done - sampled >= step) {
                density.sample(self.live.load(Ordering::Relaxed));
                sampled = done;
            }
        }
        mapped::unmap(buffer);
        self.checksum.fetch_add(checksum, Ordering::Relaxed);
        self.progress[thread].end();
    }

    /// Does what a record says. Returns what it contributes to the checksum.
    fn take(&'static self, record: &Record) -> u64 {
        match record.op {
            Op::Wait => self.progress[record.slot as usize].wait_for(record.size as u32),
            Op::Start => self.start(record.slot as usize),
            Op::Allocate | Op::AllocateZeroed => self.allocate(record),
            Op::Resize => return self.resize(record),
            Op::Free => return self.free(record),
        }
        0
    }

    fn allocate(&self, record: &Record) {
        let size = record.size as usize;
        let block = match (record.op, record.align_log2) {
            // SAFETY: any size may be asked for.
            (Op::AllocateZeroed, 0) => unsafe { libc::calloc(1, size) },
            // SAFETY: as above.
            (_, 0) => unsafe { libc::malloc(size) },
            (Op::AllocateZeroed, align_log2) => aligned_zeroed(size, 1 << align_log2),
            (_, align_log2) => aligned(size, 1 << align_log2),
        };
        if block.is_null() {
            exhausted(size);
        }
        self.fill(block.cast(), 0, record);
        self.slots[record.slot as usize].store(block.cast(), Ordering::Relaxed);
        self.count(0, record.size);
    }

    fn resize(&self, record: &Record) -> u64 {
        let slot = &self.slots[record.slot as usize];
        let block = slot.load(Ordering::Relaxed);
        let seen = self.verify(block, record);
        // C leaves open what a new size of zero does.
        let size = (record.size as usize).max(1);
        let moved = match record.align_log2 {
            // SAFETY: the slot has a block.
            0 => unsafe { libc::realloc(block.cast(), size) },
            // SAFETY: the slot has a block of so many bytes.
            align_log2 => unsafe { moved(block.cast(), record.before as usize, size, 1 << align_log2) },
        };
        if moved.is_null() {
            exhausted(size);
        }
        self.fill(moved.cast(), record.before, record);
        slot.store(moved.cast(), Ordering::Relaxed);
        self.count(record.before, record.size);
        seen
    }

    fn free(&self, record: &Record) -> u64 {
        let block = self.slots[record.slot as usize].swap(ptr::null_mut(), Ordering::Relaxed);
        let seen = self.verify(block, record);
        // SAFETY: the slot had a block, and it is null from here on.
        unsafe { libc::free(block.cast()) };
        self.count(record.before, 0);
        seen
    }

    /// Writes into a block what was not written before.
    fn fill(&self, block: *mut u8, before: u64, record: &Record) {
        let (size, mark) = (record.size as usize, mark(record));
        if self.touch == Touch::Nothing || size == 0 {
            return;
        }
        let from = if before == 0 { 0 } else { before.min(record.size) as usize };
        let len = match self.touch {
            Touch::All => size - from,
            _ if from == 0 => 1,
            _ => 0,
        };
        // SAFETY: the block has `size` bytes, and no other code has it.
        unsafe { ptr::write_bytes(block.wrapping_add(from), mark, len) };
    }

    /// Reads the first byte of a block. A block that lost it ends the process.
    fn verify(&self, block: *mut u8, record: &Record) -> u64 {
        if self.touch == Touch::Nothing || record.before == 0 {
            return 0;
        }
        // SAFETY: the slot has a block of at least one byte.
        let first = unsafe { block.read_volatile() };
        if first != mark(record) {
            corrupt(record.before as usize, block.addr(), mark(record).into(), (first.into(), first.into()));
        }
        first.into()
    }

    /// Counts a block that had `before` bytes and has `size` now. A record that frees or resizes a block waits for the one before it, which has been
    /// counted: the sum is never below zero.
    fn count(&self, before: u64, size: u64) {
        let change = size.wrapping_sub(before);
        let live = if let [_] = self.threads {
            let live = self.live.load(Ordering::Relaxed).wrapping_add(change);
            self.live.store(live, Ordering::Relaxed);
            live
        } else {
            self.live.fetch_add(change, Ordering::Relaxed).wrapping_add(change)
        };
        if live > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(live, Ordering::Relaxed);
        }
    }

    fn start(&'static self, thread: usize) {
        let begun = Box::new((self, thread));
        let mut id: libc::pthread_t = 0;
        // SAFETY: the function is of the type asked for, and takes the box back.
        let status = unsafe { libc::pthread_create(&mut id, ptr::null(), run_thread, Box::into_raw(begun).cast()) };
        if status != 0 {
            broken("a thread of the trace cannot be started: the process or the machine has too many");
        }
        // SAFETY: the thread was created above, and no one waits for it by its number.
        unsafe { libc::pthread_detach(id) };
    }
}

extern "C" fn run_thread(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `start` passes a box of this type, once.
    let (replay, thread) = *unsafe { Box::from_raw(argument.cast::<(&'static Replay, usize)>()) };
    replay.run_thread(thread, None);
    ptr::null_mut()
}

/// The byte that a slot's block is filled with: never zero.
fn mark(record: &Record) -> u8 {
    record.slot as u8 | 1
}
