//! The heap in a Rust program with several threads, over the real kernel: blocks that change threads, threads that end while
//! others free their blocks, explicit heaps. Under ThreadSanitizer (`cargo xtask tsan`) every access is checked for an order.
#![allow(unsafe_code, reason = "the allocator's interface is unsafe")]

use freestone::Freestone;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Rounds: less where each access is watched.
const ROUNDS: usize = if cfg!(debug_assertions) { 4_000 } else { 20_000 };

/// A block with its layout, filled with a byte by the thread that sends it.
struct Block {
    start: *mut u8,
    layout: Layout,
    filling: u8,
}

// SAFETY: only the holder of this value uses the block.
unsafe impl Send for Block {}

impl Block {
    fn new(seed: usize) -> Self {
        let size = match seed % 50 {
            0 => 100_000 + seed % 7 * 65_536,
            _ => 1 + seed * 37 % 3000,
        };
        Self::filled(Layout::from_size_align(size, 1 << (seed % 7)).unwrap(), seed as u8)
    }

    /// A block of up to 64 bytes.
    fn small(seed: usize) -> Self {
        Self::filled(Layout::from_size_align(1 + seed % 64, 1).unwrap(), seed as u8)
    }

    fn filled(layout: Layout, filling: u8) -> Self {
        // SAFETY: the layout has bytes.
        let start = unsafe { Freestone.alloc(layout) };
        assert!(!start.is_null());
        // SAFETY: just allocated, and that long.
        unsafe { start.write_bytes(filling, layout.size()) };
        Self { start, layout, filling }
    }

    fn grown(mut self) -> Self {
        let size = self.layout.size() * 2;
        // SAFETY: in use, with this layout.
        self.start = unsafe { Freestone.realloc(self.start, self.layout, size) };
        assert!(!self.start.is_null());
        self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
        self
    }

    fn end(self) {
        // SAFETY: the block is live, and its first byte was written.
        assert_eq!(unsafe { self.start.read() }, self.filling);
        // SAFETY: the block is live, was allocated for this layout, and is not used again.
        unsafe { Freestone.dealloc(self.start, self.layout) };
    }
}

/// Each thread sends every other block on to the next thread and frees what it gets.
fn passes_on(seed: usize, to: &Sender<Block>, from: &Receiver<Block>) {
    for round in 0..ROUNDS {
        let block = Block::new(seed + round);
        match round % 4 {
            0 => block.end(),
            1 => block.grown().end(),
            // The other end may be over: the block is freed here then.
            _ => to.send(block).unwrap_or_else(|refused| refused.0.end()),
        }
        from.try_iter().take(3).for_each(Block::end);
    }
}

#[test]
fn blocks_that_go_round_between_threads_keep_their_contents() {
    let (to, from): (Vec<_>, Vec<_>) = (0..4).map(|_| channel()).unzip();
    let mut to = to;
    to.rotate_left(1);
    let is_over = AtomicBool::new(false);
    let left: Vec<_> = thread::scope(|scope| {
        // Looks through the inboxes of the others, too.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                Freestone.purge();
            }
        });
        let threads: Vec<_> = to
            .into_iter()
            .zip(from)
            .enumerate()
            .map(|(number, (to, from))| {
                scope.spawn(move || {
                    passes_on(number * 1000, &to, &from);
                    from
                })
            })
            .collect();
        let left = threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>();
        is_over.store(true, Ordering::Relaxed);
        left.into_iter().map(Result::unwrap).collect()
    });
    // Their threads are gone: the spans of these blocks are abandoned.
    left.iter().flat_map(Receiver::try_iter).for_each(Block::end);
}

#[test]
fn threads_end_while_others_free_their_blocks() {
    for generation in 0..50 {
        let (to, from) = channel();
        let mother = thread::spawn(move || (0..100).for_each(|n| to.send(Block::new(generation * 100 + n)).unwrap()));
        let freer = thread::spawn(move || from.iter().for_each(Block::end));
        mother.join().unwrap();
        freer.join().unwrap();
    }
}

/// A thread takes back only some of what others have freed, and they go on freeing meanwhile: no block is handed out twice.
#[test]
fn a_thread_goes_on_allocating_while_others_free_a_mass_of_its_blocks() {
    const N: usize = 40_000;
    for round in 0..6 {
        let mut shares = [(); 2].map(|()| Vec::with_capacity(N));
        (0..2 * N).for_each(|n| shares[n % 2].push(Block::small(round + n)));
        thread::scope(|scope| {
            for share in shares {
                scope.spawn(move || share.into_iter().for_each(Block::end));
            }
            let mut held = Vec::new();
            for n in 0..N {
                held.push(Block::small(n));
                if n % 100 == 99 {
                    held.drain(..90).for_each(Block::end);
                }
            }
            held.into_iter().for_each(Block::end);
        });
    }
}
