//! The heap profile of a Rust program: its call sites have what they hold, small blocks and large.
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

#[expect(clippy::vec_box, reason = "each block is what is counted")]
#[inline(never)]
fn held(n: usize) -> Vec<Box<[u8; 100]>> {
    // A loop, because the closure of an iterator may be a function of its own.
    let mut blocks = Vec::with_capacity(n);
    for _ in 0..n {
        blocks.push(black_box(Box::new([1; 100])));
    }
    black_box(blocks)
}

#[inline(never)]
fn dropped(n: usize) {
    for _ in 0..n {
        drop(black_box(Box::new([2u8; 1000])));
    }
}

#[inline(never)]
fn large() -> Vec<u8> {
    black_box(vec![3; 10 << 20])
}

/// The functions of this file that a stack may have a frame of: a return address belongs to the last one before it.
fn functions() -> [usize; 4] {
    [
        held as fn(usize) -> _ as usize,
        dropped as fn(usize) as usize,
        large as fn() -> _ as usize,
        call_sites_have_what_they_hold_and_what_they_have_allocated as fn() as usize,
    ]
}

/// The estimates of a profile for stacks that have a frame of a function: bytes that are live, and that were allocated.
fn of(function: usize) -> (f64, f64) {
    let is_of_it = |code: usize| functions().into_iter().filter(|&start| start < code).max() == Some(function);
    let mut text = Vec::new();
    let mut sink = |piece: &[u8]| {
        text.extend_from_slice(piece);
        Ok(())
    };
    profile::write(Snapshot::Live, &mut sink).expect("memory takes everything");
    let text = String::from_utf8(text).expect("a text");
    let number = |part: &str| part.trim().parse::<f64>().expect("a number");
    let scaled = |blocks: f64, bytes: f64| {
        if blocks == 0.0 { 0.0 } else { bytes / -(-(bytes / blocks) / INTERVAL).exp_m1() }
    };
    let mut sums = (0.0, 0.0);
    for line in text.lines().skip(1).take_while(|line| !line.is_empty() && !line.starts_with('#')) {
        let (numbers, addresses) = line.split_once('@').expect("numbers and addresses");
        let mut codes = addresses.split_whitespace().filter_map(|code| usize::from_str_radix(&code[2..], 16).ok());
        if codes.any(|code| is_of_it(code) && code < function + 512) {
            let parts: Vec<f64> =
                numbers.split([':', '[', ']']).filter(|part| !part.trim().is_empty()).map(number).collect();
            sums.0 += scaled(parts[0], parts[1]);
            sums.1 += scaled(parts[2], parts[3]);
        }
    }
    sums
}

fn is_near(estimate: f64, exact: f64) -> bool {
    (estimate - exact).abs() < 0.1 * exact
}

#[test]
fn call_sites_have_what_they_hold_and_what_they_have_allocated() {
    const N: usize = 200_000;
    let kept = held(N);
    let (live, since_start) = of(held as fn(usize) -> _ as usize);
    // The vector of the blocks is of the same function.
    let exact = (N * (112 + 8)) as f64;
    assert!(is_near(live, exact), "{live} of {exact}");
    assert!(since_start >= live);

    dropped(N);
    let (live, since_start) = of(dropped as fn(usize) as usize);
    assert!(is_near(since_start, (N * 1024) as f64), "{since_start} of {}", N * 1024);
    assert_eq!(live, 0.0);

    let buffer = large();
    let (live, _) = of(large as fn() -> Vec<u8> as usize);
    assert!(is_near(live, (10 << 20) as f64), "{live}");
    drop(buffer);
    assert_eq!(of(large as fn() -> Vec<u8> as usize).0, 0.0);

    // Freed by a thread that allocated none of it.
    thread::spawn(move || drop(kept)).join().expect("the thread frees");
    assert_eq!(of(held as fn(usize) -> _ as usize).0, 0.0);
}
