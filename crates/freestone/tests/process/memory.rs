//! What is held, what is cached, and what happens when memory is short.
use crate::{ALLOCATOR, MIB, alone};
use freestone::door;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, ptr};

#[test]
fn statistics_count_what_is_held_and_a_purge_returns_what_it_gave_back() {
    alone(&[("BACKGROUND", "off")], || {
        let before = ALLOCATOR.stats();
        let (large, small): (_, Vec<_>) = (vec![1_u8; 8 * MIB], (0..100_000_u64).map(Box::new).collect());
        let with = ALLOCATOR.stats();
        assert!(with.live >= before.live + 8 * MIB as u64 + 100_000 * 8, "{before:?} {with:?}");
        assert!(with.n_allocations >= before.n_allocations + 100_001 && with.committed > before.committed);
        drop((large, small));
        let after = ALLOCATOR.stats();
        // The program's other thread, which waits for this one, may have allocated a little meanwhile.
        let n_held = |stats: &freestone::Stats| stats.n_allocations - stats.n_frees;
        assert!(after.live < before.live + 64_000 && n_held(&after) < n_held(&before) + 1000, "{before:?} {after:?}");
        // A part may have gone back when it was freed.
        let returned = ALLOCATOR.purge();
        assert_eq!(after.purged + returned as u64, ALLOCATOR.stats().purged);
        assert!(returned > 0 && ALLOCATOR.stats().purged >= 8 * MIB as u64, "{returned}");
        assert_eq!((ALLOCATOR.purge(), ALLOCATOR.stats().dirty), (0, 0));
    });
}

/// Bins have room for a part of the blocks; those that overflow them go back to their spans.
#[test]
fn a_thread_that_frees_many_blocks_caches_few_of_them() {
    alone(&[("BACKGROUND", "off")], || {
        for free_by_layout in [true, false] {
            let layout = Layout::new::<[u64; 16]>();
            // SAFETY: the layout has bytes.
            let blocks: Vec<_> = (0..100_000).map(|_| unsafe { ALLOCATOR.alloc(layout) }).collect();
            for block in blocks {
                assert!(!block.is_null());
                if free_by_layout {
                    // SAFETY: the block was allocated for the layout, and is not used again.
                    unsafe { ALLOCATOR.dealloc(block, layout) };
                } else {
                    // SAFETY: the block is live, and not used again.
                    unsafe { door::free(block) };
                }
            }
            let stats = ALLOCATOR.stats();
            assert!(stats.cached < 2 * MIB as u64, "{stats:?}");
        }
    });
}

#[test]
fn a_large_block_is_as_long_as_it_says_and_calloc_clears_memory_that_was_used() {
    alone(&[], || {
        for size in [40_000, 300_000, 5 * MIB] {
            for round in 0..4 {
                // SAFETY: 1 is a power of two.
                let block = unsafe { door::allocate_zeroed(size, 1) };
                // SAFETY: the block is live.
                let usable = unsafe { door::usable_size(block) };
                assert!((size..size + MIB).contains(&usable), "{usable} for {size}");
                // SAFETY: the block has as many bytes, and `allocate_zeroed` wrote them or they come from the kernel.
                let bytes = unsafe { std::slice::from_raw_parts_mut(block, usable) };
                assert!(bytes[..size].iter().all(|&byte| byte == 0), "round {round} of {size}");
                bytes.fill(1);
                // SAFETY: the block is live, and not used again.
                unsafe { door::free(block) };
            }
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { door::usable_size(ptr::null_mut()) }, 0);
    });
}

#[test]
fn a_size_that_is_not_possible_is_refused_with_enomem_and_makes_no_callback() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn count(_in_use_bytes: usize, _argument: *mut c_void) {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    alone(&[], || {
        // SAFETY: any thread may call the function with any argument.
        unsafe { ALLOCATOR.on_pressure(Some(count), ptr::null_mut()) };
        for size in [usize::MAX, usize::MAX / 2 + 1] {
            freestone_os::process::set_errno(freestone_os::Errno(0));
            assert!(door::allocate(size).is_null());
            // SAFETY: 1 is a power of two.
            assert!(unsafe { door::allocate_zeroed(size, 1) }.is_null());
            assert_eq!(
                (freestone_os::process::errno(), CALLS.load(Ordering::Relaxed)),
                (freestone_os::Errno::NOMEM, 0)
            );
        }
    });
}

#[test]
fn the_listener_is_called_at_the_soft_limit_and_before_an_allocation_fails_at_the_hard_one() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn count(in_use_bytes: usize, _argument: *mut c_void) {
        assert!(in_use_bytes > 8 * MIB);
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    alone(&[("LIMIT", "16m"), ("LIMIT_HARD", "32m"), ("BACKGROUND", "off")], || {
        // SAFETY: any thread may call the function with any argument.
        unsafe { ALLOCATOR.on_pressure(Some(count), ptr::null_mut()) };
        let first = door::allocate(12 * MIB);
        assert!(!first.is_null() && CALLS.load(Ordering::Relaxed) == 0);
        let second = door::allocate(12 * MIB);
        assert!(!second.is_null() && CALLS.load(Ordering::Relaxed) == 1);
        assert!(door::allocate(12 * MIB).is_null(), "36 MiB of 32");
        assert_eq!(CALLS.load(Ordering::Relaxed), 2);
        for block in [first, second] {
            // SAFETY: the block is live, and not used again.
            unsafe { door::free(block) };
        }
        assert!(!door::allocate(12 * MIB).is_null());
    });
}

/// What a listener frees is there for the allocation that called it.
#[test]
fn an_allocation_is_tried_again_after_the_listener_has_made_room() {
    unsafe extern "C" fn let_go(_in_use_bytes: usize, kept: *mut c_void) {
        // SAFETY: the argument is a block that is freed once, as the swap says.
        let block = unsafe { &*kept.cast::<AtomicUsize>() }.swap(0, Ordering::Relaxed);
        // SAFETY: null, or the block, which is not used again.
        unsafe { door::free(ptr::with_exposed_provenance_mut(block)) };
    }
    alone(&[("LIMIT_HARD", "32m"), ("BACKGROUND", "off")], || {
        for size in [20 * MIB, 30_000, 64] {
            let kept = AtomicUsize::new(door::allocate(20 * MIB).expose_provenance());
            // SAFETY: the argument outlives the listener, which is taken away below.
            unsafe { ALLOCATOR.on_pressure(Some(let_go), (&raw const kept).cast_mut().cast()) };
            let mut blocks = Vec::new();
            while kept.load(Ordering::Relaxed) != 0 {
                blocks.push(door::allocate(size));
                assert!(blocks.last().is_some_and(|block| !block.is_null()), "{size} bytes are refused");
            }
            // SAFETY: no listener needs no argument.
            unsafe { ALLOCATOR.on_pressure(None, ptr::null_mut()) };
            for block in blocks {
                // SAFETY: the block is live, and not used again.
                unsafe { door::free(block) };
            }
            ALLOCATOR.purge();
        }
    });
}

/// A pointer that is no block stays that, however much memory a listener makes free.
#[test]
fn the_listener_is_called_for_a_block_that_cannot_grow_and_not_for_a_wrong_pointer() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn count(_in_use_bytes: usize, _argument: *mut c_void) {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    for level in ["default", "checks"] {
        let options = [("LIMIT_HARD", "32m"), ("HARDEN", level), ("MISUSE", "ignore"), ("BACKGROUND", "off")];
        alone(&options, || {
            // SAFETY: any thread may call the function with any argument.
            unsafe { ALLOCATOR.on_pressure(Some(count), ptr::null_mut()) };
            let n_calls = |block: *mut u8| {
                let before = CALLS.load(Ordering::Relaxed);
                // SAFETY: the block is live, or wrong in a way that this level of hardening sees.
                assert!(unsafe { door::reallocate(block, 64 * MIB, 1) }.is_null());
                CALLS.load(Ordering::Relaxed) - before
            };
            let (small, other, large) = (door::allocate(100), door::allocate(100), door::allocate(300_000));
            assert_eq!((n_calls(small), n_calls(large)), (1, 1));
            let mut foreign = [0_u64; 2];
            assert_eq!(n_calls((&raw mut foreign).cast()), 0);
            if env::var("FREESTONE_HARDEN").is_ok_and(|level| level == "checks") {
                assert_eq!((n_calls(small.wrapping_add(16)), n_calls(large.wrapping_add(4096))), (0, 0));
                // SAFETY: the block is live, and not used again but for the mistake that the test is about.
                unsafe { door::free(other) };
                assert_eq!((n_calls(other), n_calls(small)), (0, 1));
            }
        });
    }
}

/// Of the sizes between, bins have blocks that are aligned to 16 only.
#[test]
fn a_block_that_is_resized_keeps_its_alignment_and_its_contents() {
    alone(&[("BACKGROUND", "off")], || {
        let sizes = [24, 200, 40, 72, 136, 1000, 3000, 20_000, 100, 300_000, 65];
        for align in [1, 16, 32, 64, 256, 4096] {
            let layout = |size| Layout::from_size_align(size, align).expect("a layout");
            // What the bins have before: an odd number, so that the next one of them is not aligned to more by chance.
            let blocks: Vec<_> = sizes.iter().flat_map(|&size| [size; 9]).map(|size| vec![7_u8; size]).collect();
            drop(blocks);
            // SAFETY: the layout has bytes.
            let mut block = unsafe { ALLOCATOR.alloc(layout(sizes[0])) };
            for pair in sizes.windows(2) {
                // SAFETY: the block has as many bytes.
                unsafe { block.write_bytes(pair[1] as u8, pair[0]) };
                // SAFETY: the block was allocated for this layout, and only the new one is used.
                block = unsafe { ALLOCATOR.realloc(block, layout(pair[0]), pair[1]) };
                assert_eq!(block.addr() % align, 0, "{pair:?} bytes, aligned to {align}");
                // SAFETY: the block has as many bytes, which were written.
                let kept = unsafe { std::slice::from_raw_parts(block, pair[0].min(pair[1])) };
                assert!(kept.iter().all(|&byte| byte == pair[1] as u8), "{pair:?} bytes, aligned to {align}");
            }
            // SAFETY: the block was last resized to this layout.
            unsafe { ALLOCATOR.dealloc(block, layout(sizes[sizes.len() - 1])) };
        }
    });
}

#[test]
fn the_listener_is_called_where_a_resized_block_or_one_of_an_explicit_heap_passes_the_soft_limit() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn count(_in_use_bytes: usize, _argument: *mut c_void) {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    alone(&[("LIMIT", "16m"), ("BACKGROUND", "off")], || {
        // SAFETY: any thread may call the function with any argument.
        unsafe { ALLOCATOR.on_pressure(Some(count), ptr::null_mut()) };
        let block = door::allocate(12 * MIB);
        assert_eq!(CALLS.load(Ordering::Relaxed), 0);
        // SAFETY: the block is live, and only the new one is used.
        let block = unsafe { door::reallocate(block, 20 * MIB, 1) };
        assert!(!block.is_null());
        assert_eq!(CALLS.load(Ordering::Relaxed), 1);
        // SAFETY: the block is live, and not used again.
        unsafe { door::free(block) };
        ALLOCATOR.purge();
        // SAFETY: no block is used after the heap is dropped, and none is freed by the global allocator.
        let heap = unsafe { freestone::Heap::new() }.expect("memory for a heap");
        let layout = Layout::from_size_align(12 * MIB, 1).expect("a layout");
        assert!(heap.allocate(layout).is_some());
        assert_eq!(CALLS.load(Ordering::Relaxed), 1);
        assert!(heap.allocate(layout).is_some());
        assert_eq!(CALLS.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn a_small_block_that_moves_is_aligned_as_the_call_says() {
    alone(&[], || {
        // Blocks that are at hand for this thread, of which most are aligned to 16 bytes.
        for bytes in (208..800).step_by(16) {
            let waiting: Vec<_> = (0..20).map(|_| door::allocate(bytes)).collect();
            // SAFETY: the blocks are live, and not used again.
            waiting.into_iter().for_each(|block| unsafe { door::free(block) });
        }
        for align in [32, 64, 256] {
            for bytes in (80..600).step_by(20) {
                // SAFETY: a power of two.
                let block = unsafe { door::allocate_aligned(32, align) };
                // SAFETY: the block is live, and not used again.
                let moved = unsafe { door::reallocate(block, bytes, align) };
                assert!(!moved.is_null() && moved.addr() % align == 0, "{moved:?}, to be aligned to {align}");
            }
        }
    });
}
