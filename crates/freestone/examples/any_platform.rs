//! A program of collections and, where there are threads, of blocks that one thread allocates and others free: three lines make Freestone its allocator, on
//! every platform. `cargo xtask test --only platforms` runs it as a program of some.

#[global_allocator]
static ALLOCATOR: freestone::Freestone = freestone::Freestone;

use std::collections::HashMap;

/// Fills a map, removes half of it, and sums up what is left.
fn sum_of_a_map(n: u64) -> u64 {
    let mut map: HashMap<u64, Vec<u64>> = (0..n).map(|key| (key, vec![key; (key % 37) as usize])).collect();
    (0..n).step_by(2).for_each(|key| drop(map.remove(&key)));
    map.values().flatten().sum()
}

/// Has `n_threads` allocate blocks, each of which the next one frees.
fn pass_blocks_on(n_threads: usize) {
    let mut threads = Vec::new();
    let mut received: Option<std::sync::mpsc::Receiver<Box<[u8]>>> = None;
    for number in 0..n_threads {
        let (send, receive) = std::sync::mpsc::channel();
        let from = received.replace(receive);
        threads.push(std::thread::spawn(move || {
            for size in 1..2000_usize {
                let _ = send.send(vec![number as u8; size * 7].into_boxed_slice());
            }
            drop(send);
            from.into_iter().flatten().for_each(|block| assert_eq!(usize::from(block[0]), number - 1));
        }));
    }
    drop(received);
    threads.into_iter().for_each(|thread| thread.join().expect("a thread has no reason to panic"));
}

fn main() {
    let expected: u64 = (0..100_000).filter(|key| key % 2 == 1).map(|key| key * (key % 37)).sum();
    assert_eq!(sum_of_a_map(100_000), expected);
    if !cfg!(target_family = "wasm") {
        pass_blocks_on(4);
    }
    let mut large = vec![1_u8; 20 << 20];
    large.resize(60 << 20, 2);
    assert!(ALLOCATOR.stats().live >= 60 << 20);
    assert!(large.iter().map(|&byte| u64::from(byte)).sum::<u64>() == (20 << 20) + (40 << 21));
    drop(large);
    let zeros = vec![0_u8; 60 << 20];
    assert!(zeros.iter().all(|&byte| byte == 0), "memory that was used before is zero again");
    drop(zeros);
    ALLOCATOR.purge();
    #[allow(unsafe_code, reason = "whoever makes a heap promises that")]
    // SAFETY: no block of the heap is used after it is dropped.
    let heap = unsafe { freestone::Heap::new() }.expect("memory for a heap");
    assert!(heap.allocate(std::alloc::Layout::new::<[u64; 100]>()).is_some());
    println!("Freestone serves this program: {} bytes live", ALLOCATOR.stats().live);
}
