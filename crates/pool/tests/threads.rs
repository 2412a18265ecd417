//! Threads on one shared pool: no block is handed to two threads, and none is lost.
#![allow(unsafe_code, reason = "blocks are written to")]

mod subject;

use freestone_pool::Shape;
use freestone_testkit::ops::SplitMix;
use std::ptr::NonNull;
use std::sync::Mutex;
use subject::Memory;

struct Sent(NonNull<u8>);
// SAFETY: only the thread that has the value uses the block.
unsafe impl Send for Sent {}

/// Each thread allocates, marks, verifies and frees; some blocks change threads on the way through `crossing`.
#[test]
fn a_block_belongs_to_one_thread_at_a_time() {
    const N_STEPS: usize = if cfg!(miri) { 200 } else { 200_000 };
    let shape = Shape::new(24, 300).unwrap();
    let memory = Memory::new(shape.shared_region_bytes(), 0xA5);
    let mut pool = memory.shared(shape);
    let crossing = Mutex::new(Vec::<Sent>::new());
    std::thread::scope(|scope| {
        for thread in 1..=3_u64 {
            let (pool, crossing) = (&pool, &crossing);
            scope.spawn(move || {
                let mut magazine = pool.magazine();
                let mut random = SplitMix(thread);
                let mut held = Vec::new();
                for step in 0..N_STEPS as u64 {
                    let tag = thread << 32 | step;
                    match random.below(8) {
                        0..4 => {
                            let with_magazine = random.below(4) > 0;
                            let taken = if with_magazine { magazine.allocate_zeroed() } else { pool.allocate_zeroed() };
                            let Ok(block) = taken else { continue };
                            // SAFETY: 24 bytes, this thread's.
                            assert_eq!(unsafe { block.cast::<[u64; 3]>().read() }, [0; 3]);
                            // SAFETY: as above.
                            unsafe { block.cast::<[u64; 3]>().write([tag; 3]) };
                            held.push((Sent(block), tag));
                        }
                        4 if !held.is_empty() => {
                            let (block, _) = held.swap_remove(random.below(held.len()));
                            crossing.lock().unwrap().push(block);
                        }
                        5 => {
                            let Some(block) = crossing.lock().unwrap().pop() else { continue };
                            // SAFETY: this thread's now.
                            let [a, b, c] = unsafe { block.0.cast::<[u64; 3]>().read() };
                            assert!(a == b && b == c && a != 0);
                            // SAFETY: as above.
                            unsafe { magazine.deallocate(block.0) }.unwrap();
                        }
                        _ if !held.is_empty() => {
                            let (block, tag) = held.swap_remove(random.below(held.len()));
                            // SAFETY: this thread's.
                            assert_eq!(unsafe { block.0.cast::<[u64; 3]>().read() }, [tag; 3]);
                            if random.below(4) > 0 {
                                // SAFETY: as above.
                                unsafe { magazine.deallocate(block.0) }
                            } else {
                                // SAFETY: as above.
                                unsafe { pool.deallocate(block.0) }
                            }
                            .unwrap();
                        }
                        _ => {}
                    }
                }
                crossing.lock().unwrap().extend(held.into_iter().map(|(block, _)| block));
            });
        }
    });
    assert_eq!(pool.check(), Ok(()));
    for block in crossing.into_inner().unwrap() {
        // SAFETY: only this test uses the memory.
        unsafe { pool.deallocate(block.0) }.unwrap();
    }
    assert_eq!(pool.check(), Ok(()));
    assert!(pool.close().is_ok());
}
