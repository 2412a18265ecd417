//! The heap profile of a Rust program: its call sites have what they hold, small blocks and large.
//!
//! A call site is a depth of recursion here: how often one return address is on a stack. No address says by itself which function it is in.
#![allow(unsafe_code)]
//!
//! # Safety
//! The symbol is a C string, as the allocator expects it.

use freestone::Freestone;
use freestone::profile::{self, Snapshot};
use std::hint::black_box;
use std::thread;

#[global_allocator]
static ALLOCATOR: Freestone = Freestone;

/// Read when the allocator starts.
#[unsafe(no_mangle)]
static freestone_options: [u8; 69] = *b"heap_profile=on,heap_profile_interval=4k,heap_profile_file=/dev/null\0";

/// One byte in so many is sampled.
const INTERVAL: f64 = 4096.0;

/// Calls `allocate` from the call site of this depth.
#[inline(never)]
fn at(depth: usize, allocate: &mut dyn FnMut()) {
    if depth == 0 {
        allocate();
    } else {
        at(black_box(depth - 1), allocate);
    }
    // So that no call is a jump.
    black_box(());
}

/// A line of a profile: estimates of live and of all bytes, and the return addresses.
struct Line {
    live: f64,
    since_start: f64,
    addresses: Vec<String>,
}

impl Line {
    fn times(&self, address: &str) -> usize {
        self.addresses.iter().filter(|other| *other == address).count()
    }
}

fn profile() -> Vec<Line> {
    let mut text = Vec::new();
    let mut sink = |piece: &[u8]| {
        text.extend_from_slice(piece);
        Ok(())
    };
    profile::write(Snapshot::Live, &mut sink).expect("memory takes everything");
    let text = String::from_utf8(text).expect("a text");
    let scaled = |blocks: f64, bytes: f64| {
        if blocks == 0.0 { 0.0 } else { bytes / -(-(bytes / blocks) / INTERVAL).exp_m1() }
    };
    let line = |line: &str| {
        let (numbers, addresses) = line.split_once('@').expect("numbers and addresses");
        let parts = numbers.split([':', '[', ']']).map(str::trim).filter(|part| !part.is_empty());
        let parts: Vec<f64> = parts.map(|part| part.parse().expect("a number")).collect();
        Line {
            live: scaled(parts[0], parts[1]),
            since_start: scaled(parts[2], parts[3]),
            addresses: addresses.split_whitespace().map(str::to_owned).collect(),
        }
    };
    text.lines().skip(1).take_while(|line| !line.is_empty() && !line.starts_with('#')).map(line).collect()
}

/// The return address that is on a stack once for each level of recursion.
fn level() -> String {
    const DEPTH: usize = 20;
    let mut block = Vec::new();
    at(DEPTH, &mut || block = black_box(vec![1u8; 10 << 20]));
    let all = profile();
    let addresses =
        all.iter().flat_map(|line| line.addresses.iter().map(move |address| (line.times(address), address)));
    let (n, address) = addresses.max().expect("the block is sampled");
    assert_eq!(n, DEPTH);
    address.clone()
}

/// Bytes that are live, and that were allocated, of the call site of this depth.
fn of(depth: usize, level: &str) -> (f64, f64) {
    let lines = profile();
    let of_it = || lines.iter().filter(|line| line.times(level) == depth);
    (of_it().map(|line| line.live).sum(), of_it().map(|line| line.since_start).sum())
}

fn is_near(estimate: f64, exact: f64) -> bool {
    (estimate - exact).abs() < 0.1 * exact
}

#[test]
fn call_sites_have_what_they_hold_and_what_they_have_allocated() {
    const N: usize = 100_000;
    // Nothing may be written there, and least of all where the sources are.
    std::env::set_current_dir(std::env::temp_dir()).expect("a folder for temporary files");
    let level = level();
    let mut kept = Vec::with_capacity(N);
    at(1, &mut || kept.extend((0..N).map(|_| black_box(Box::new([1u8; 100])))));
    let (live, since_start) = of(1, &level);
    assert!(is_near(live, (N * 112) as f64) && is_near(since_start, (N * 112) as f64), "{live} {since_start}");

    at(2, &mut || (0..N).for_each(|_| drop(black_box(Box::new([2u8; 1000])))));
    let (live, since_start) = of(2, &level);
    assert!(is_near(since_start, (N * 1024) as f64), "{since_start} of {}", N * 1024);
    assert_eq!(live, 0.0);

    let mut buffer = Vec::new();
    at(3, &mut || buffer = black_box(vec![3u8; 10 << 20]));
    assert!(is_near(of(3, &level).0, (10 << 20) as f64));
    drop(buffer);
    assert_eq!(of(3, &level).0, 0.0);

    // Freed by a thread that allocated none of it.
    thread::spawn(move || drop(kept)).join().expect("the thread frees");
    assert_eq!(of(1, &level).0, 0.0);
    assert!(is_near(of(1, &level).1, (N * 112) as f64));
}
