//! The measured loops: `Box::new` and drop of 48 bytes, and a `Vec` that grows to 32 elements. Prints one line of JSON for both.

use std::hint::black_box;
use std::time::Instant;

/// Pairs of allocation and drop in a run: about a second.
const PAIRS: u64 = 100_000_000;

/// Vectors that a run grows.
const VECS: u64 = 5_000_000;

/// Runs both loops and prints nanoseconds for each pair and each vector.
pub fn run(allocator: &str) {
    let start = Instant::now();
    for i in 0..PAIRS {
        drop(black_box(Box::new(black_box([i; 6]))));
    }
    let pair_ns = start.elapsed().as_nanos() as f64 / PAIRS as f64;
    let start = Instant::now();
    for i in 0..VECS {
        let mut vec = Vec::new();
        for element in 0..32 {
            vec.push(i ^ element);
        }
        black_box(vec);
    }
    let vec_ns = start.elapsed().as_nanos() as f64 / VECS as f64;
    println!("{{\"allocator\":\"{allocator}\",\"box_pair_ns\":{pair_ns:.3},\"vec_of_32_ns\":{vec_ns:.3}}}");
}
