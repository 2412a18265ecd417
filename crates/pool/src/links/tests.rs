//! Loom models: every interleaving of a few calls on a list of two or three blocks.
#![allow(unsafe_code)]
extern crate std;

use crate::{Magazine, NoFallback, Shape, SharedPool};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::boxed::Box;
use std::sync::Arc;
use std::vec;

/// A pool over leaked memory: loom's atomics must not be in a region that is freed.
fn pool(count: usize) -> Arc<SharedPool<'static>> {
    let shape = Shape::new(8, count).unwrap();
    let words = shape.shared_region_bytes().div_ceil(8);
    let memory = Box::leak(vec![MaybeUninit::<u64>::uninit(); words].into_boxed_slice());
    // SAFETY: leaked, so no other code ever uses it.
    Arc::new(unsafe { SharedPool::new_at(shape, NonNull::from(memory).cast(), words * 8) }.unwrap())
}

/// A block, as a number that can be sent.
fn take(pool: &SharedPool<'static>) -> Option<usize> {
    pool.allocate().ok().map(|block| block.addr().get())
}

fn give(pool: &SharedPool<'static>, address: usize) -> bool {
    let block = pool.leaks().find(|block| block.addr().get() == address);
    // SAFETY: no other code uses the block.
    block.is_some_and(|block| unsafe { pool.deallocate(block) }.is_ok())
}

fn check(pool: Arc<SharedPool<'static>>, n_used: usize) {
    let mut pool = Arc::into_inner(pool).unwrap();
    assert_eq!(pool.stats().n_used, n_used);
    pool.check().unwrap();
}

/// Pop, pop, push of the first again, beside a pop that began before: the ABA of a list without tags.
#[test]
fn a_pop_that_was_overtaken_never_takes_a_block_that_is_in_use() {
    loom::model(|| {
        let pool = pool(3);
        let all = [(); 3].map(|()| take(&pool).unwrap());
        assert!(all.into_iter().all(|block| give(&pool, block)));
        let other = Arc::clone(&pool);
        let overtaker = loom::thread::spawn(move || {
            let (first, second) = (take(&other).unwrap(), take(&other));
            assert!(give(&other, first));
            second
        });
        let mine = take(&pool);
        let second = overtaker.join().unwrap();
        assert!(mine.is_some() && mine != second, "one block for two threads");
        check(pool, 1 + usize::from(second.is_some()));
    });
}

/// A block moves to another thread through the list, with what was written to it.
#[test]
fn the_contents_of_a_block_are_visible_to_its_next_owner() {
    loom::model(|| {
        let pool = pool(1);
        let block = pool.allocate().unwrap();
        // SAFETY: 8 bytes in use here.
        unsafe { block.cast::<usize>().write(7) };
        let seen = Arc::new(loom::cell::UnsafeCell::new(0));
        let (other, writer) = (Arc::clone(&pool), Arc::clone(&seen));
        let address = block.addr().get();
        let freer = loom::thread::spawn(move || {
            // The cell stands for the block's contents: loom sees an access that is not ordered.
            // SAFETY: the block is in use by this thread.
            writer.with_mut(|value| unsafe { *value = 1 });
            assert!(give(&other, address));
        });
        let other = Arc::clone(&pool);
        let taker = loom::thread::spawn(move || {
            if take(&other).is_some() {
                // SAFETY: the block is in use by this thread now.
                seen.with_mut(|value| unsafe { *value += 1 });
            }
        });
        freer.join().unwrap();
        taker.join().unwrap();
    });
}

#[test]
fn if_two_threads_free_one_block_one_is_refused() {
    loom::model(|| {
        let pool = pool(1);
        let block = take(&pool).unwrap();
        let other = Arc::clone(&pool);
        let freer = loom::thread::spawn(move || give(&other, block));
        let mine = give(&pool, block);
        assert_ne!(mine, freer.join().unwrap());
        check(pool, 0);
    });
}

/// Two magazines of two on three blocks: batches are carved, popped and flushed at the same time.
#[test]
fn magazines_neither_lose_nor_double_a_block() {
    loom::model(|| {
        let pool = pool(3);
        let work = |pool: &SharedPool<'static>| {
            let mut magazine = Magazine::<NoFallback, 2>::new(pool);
            let blocks = [magazine.allocate().ok(), magazine.allocate().ok()];
            for block in blocks.into_iter().flatten() {
                // SAFETY: no other code uses the block.
                unsafe { magazine.deallocate(block) }.unwrap();
            }
            usize::from(blocks[0].is_some()) + usize::from(blocks[1].is_some())
        };
        let other = Arc::clone(&pool);
        let worker = loom::thread::spawn(move || work(&other));
        assert!(work(&pool) > 0);
        assert!(worker.join().unwrap() > 0);
        check(pool, 0);
    });
}

/// Two threads that hold at most one block each, of two: a take that finds the list empty and then the high-water mark at its end tries again.
#[test]
fn no_request_is_refused_while_a_block_is_free() {
    loom::model(|| {
        let pool = pool(2);
        let other = Arc::clone(&pool);
        let worker = loom::thread::spawn(move || {
            for _ in 0..2 {
                let block = take(&other).unwrap();
                assert!(give(&other, block));
            }
        });
        let block = take(&pool).unwrap();
        worker.join().unwrap();
        assert!(give(&pool, block));
        check(pool, 0);
    });
}

/// As above, with blocks that move from one list to the other: one is always free, but a single pass over the lists may miss it.
#[test]
fn no_request_is_refused_while_a_block_moves_between_lists() {
    loom::model(|| {
        let pool = pool(2);
        let all = [(); 2].map(|()| take(&pool).unwrap());
        assert!(all.into_iter().all(|block| give(&pool, block)));
        let other = Arc::clone(&pool);
        let worker = loom::thread::spawn(move || {
            for _ in 0..2 {
                let mut batch = [0];
                assert_eq!(other.links.take(0, &mut batch), 1);
                other.links.give(1, &batch);
            }
        });
        let mut batch = [0];
        assert_eq!(pool.links.take(1, &mut batch), 1);
        worker.join().unwrap();
        pool.links.give(0, &batch);
        check(pool, 0);
    });
}
