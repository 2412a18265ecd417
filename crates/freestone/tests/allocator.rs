//! The `Allocator` traits: what they promise, and the collections of other crates that take an allocator.
//!
//! `cargo test -p freestone --features allocator-api2,allocator-api2-02 --test allocator`; with `nightly` the standard library's collections too.
#![cfg(any(feature = "allocator-api2", feature = "allocator-api2-02", feature = "nightly"))]
#![cfg_attr(feature = "nightly", feature(allocator_api))]
#![allow(unsafe_code)]

use freestone::{Freestone, Heap};

/// A heap whose blocks are freed through it or end with it.
fn heap() -> Heap {
    // SAFETY: no test uses a block after its heap is dropped, or frees one by the global allocator.
    unsafe { Heap::new() }.unwrap()
}

/// The tests of one version of the trait, in a module of its own.
macro_rules! version {
    ($name:ident, $($alloc:ident)::+, $($vec:ident)::+) => {
        mod $name {
            use super::{Freestone, Heap, heap};
            use $($alloc)::+::{Allocator, Layout};
            use $($vec)::+::Vec;
            use std::ptr::NonNull;

            /// Calls `check` with each kind of allocator.
            macro_rules! each {
                ($check:ident) => {{
                    let heap = heap();
                    $check(&Freestone);
                    $check(&heap);
                    $check(&&heap);
                }};
            }

            fn layout(size: usize, align: usize) -> Layout {
                Layout::from_size_align(size, align).unwrap()
            }

            /// Writes numbers to the first bytes of a block.
            fn write(block: NonNull<[u8]>, bytes: usize) {
                for at in 0..bytes.min(block.len()) {
                    // SAFETY: the byte is in the block.
                    unsafe { block.cast::<u8>().add(at).write(at as u8 | 1) };
                }
            }

            /// The bytes of a block.
            fn read<'a>(block: NonNull<[u8]>) -> &'a [u8] {
                // SAFETY: the tests have written all bytes of a block before, or it is zeroed, and do not use the slice later.
                unsafe { block.as_ref() }
            }

            fn blocks_fit_their_layouts(allocator: &impl Allocator) {
                for (size, align) in [(1, 1), (24, 8), (100, 64), (5000, 4096), (40_000, 16), (3 << 20, 1 << 16)] {
                    let block = allocator.allocate(layout(size, align)).unwrap();
                    assert!(block.len() == size && block.cast::<u8>().addr().get() % align == 0);
                    write(block, size);
                    // SAFETY: the block was allocated for this layout just now.
                    unsafe { allocator.deallocate(block.cast(), layout(size, align)) };
                    let block = allocator.allocate_zeroed(layout(size, align)).unwrap();
                    assert!(read(block).iter().all(|&byte| byte == 0), "{size}");
                    // SAFETY: as above.
                    unsafe { allocator.deallocate(block.cast(), layout(size, align)) };
                }
            }

            #[test]
            fn a_block_is_as_large_and_as_aligned_as_its_layout_and_a_zeroed_one_is_zero_although_its_memory_was_used() {
                each!(blocks_fit_their_layouts);
            }

            fn blocks_grow_and_shrink(allocator: &impl Allocator) {
                for size in [17, 3000, 200_000] {
                    let (mut old, mut block) = (layout(size, 8), allocator.allocate(layout(size, 8)).unwrap());
                    write(block, size);
                    for new in [size + 1, size * 3, size * 20] {
                        // SAFETY: the block was allocated for `old`, and the new one replaces it.
                        block = unsafe { allocator.grow_zeroed(block.cast(), old, layout(new, 8)) }.unwrap();
                        let bytes = read(block);
                        assert!((0..size).all(|at| bytes[at] == at as u8 | 1), "{size} to {new}");
                        assert!(bytes.len() == new && bytes[size..].iter().all(|&byte| byte == 0), "{size} to {new}");
                        old = layout(new, 8);
                    }
                    for (new, align) in [(size * 2, 8), (size, 4096), (size / 2, 4096)] {
                        // SAFETY: as above.
                        block = unsafe { allocator.shrink(block.cast(), old, layout(new, align)) }.unwrap();
                        let bytes = read(block);
                        assert!((0..new.min(size)).all(|at| bytes[at] == at as u8 | 1), "{size} to {new}");
                        assert!(bytes.as_ptr().addr() % align == 0);
                        old = layout(new, align);
                    }
                    // SAFETY: as above.
                    unsafe { allocator.deallocate(block.cast(), old) };
                }
            }

            #[test]
            fn contents_stay_in_a_block_that_grows_or_shrinks_and_what_is_added_is_zero() {
                each!(blocks_grow_and_shrink);
            }

            fn blocks_stay(allocator: &impl Allocator) {
                // The sizes of a pair have the same class, or are large and leave the run in place.
                for (small, large) in [(17, 32), (2900, 3000), (5 << 20, 6 << 20)] {
                    let block = allocator.allocate(layout(large, 8)).unwrap();
                    // SAFETY: the block was allocated for this layout, and the new one replaces it.
                    let less = unsafe { allocator.shrink(block.cast(), layout(large, 8), layout(small, 8)) }.unwrap();
                    assert_eq!((less.cast::<u8>(), less.len()), (block.cast(), small));
                    // SAFETY: as above.
                    let more = unsafe { allocator.grow(less.cast(), layout(small, 8), layout(large, 8)) }.unwrap();
                    assert_eq!((more.cast::<u8>(), more.len()), (block.cast(), large));
                    // SAFETY: as above.
                    unsafe { allocator.deallocate(more.cast(), layout(large, 8)) };
                }
            }

            #[test]
            fn a_block_grows_and_shrinks_in_place_where_it_has_the_room() {
                each!(blocks_stay);
            }

            fn nothing_is_no_block(allocator: &impl Allocator) {
                let nothing = allocator.allocate(layout(0, 256)).unwrap();
                assert!(nothing.len() == 0 && nothing.cast::<u8>().addr().get() == 256, "a dangling pointer");
                // SAFETY: it was allocated for this layout, and the new one replaces it.
                let block = unsafe { allocator.grow(nothing.cast(), layout(0, 256), layout(10, 1)) }.unwrap();
                write(block, 10);
                // SAFETY: as above.
                let nothing = unsafe { allocator.shrink(block.cast(), layout(10, 1), layout(0, 1)) }.unwrap();
                assert_eq!(nothing.len(), 0);
                // SAFETY: as above.
                unsafe { allocator.deallocate(nothing.cast(), layout(0, 1)) };
            }

            #[test]
            fn a_request_of_no_bytes_gets_no_block() {
                each!(nothing_is_no_block);
            }

            #[test]
            fn a_heap_at_its_limit_refuses_and_the_block_that_was_to_grow_stays_as_it_was() {
                let heap = heap();
                heap.set_limit(Some(1 << 20)).unwrap();
                let old = layout(1000, 8);
                let block = Allocator::allocate(&heap, old).unwrap();
                write(block, 1000);
                assert!(Allocator::allocate(&heap, layout(2 << 20, 8)).is_err());
                // SAFETY: the block was allocated for `old`; it stays the test's when this fails.
                assert!(unsafe { heap.grow(block.cast(), old, layout(2 << 20, 8)) }.is_err());
                assert!((0..1000).all(|at| read(block)[at] == at as u8 | 1));
                // SAFETY: as above.
                unsafe { Allocator::deallocate(&heap, block.cast(), old) };
            }

            #[test]
            fn a_vec_lives_in_the_process_in_a_heap_that_it_owns_and_in_one_that_it_borrows() {
                fn fill(mut numbers: Vec<u64, impl Allocator>) {
                    numbers.extend(0..10_000);
                    numbers.truncate(100);
                    numbers.shrink_to_fit();
                    assert_eq!(numbers.iter().sum::<u64>(), 99 * 50);
                }
                fill(Vec::new_in(Freestone));
                fill(Vec::new_in(heap()));
                let heap: Heap = heap();
                fill(Vec::new_in(&heap));
            }

            /// An arena as bumpalo's: blocks one behind the other in chunks of an allocator, all freed at once.
            struct Arena<A: Allocator> {
                allocator: A,
                chunks: std::vec::Vec<NonNull<u8>>,
                used: usize,
            }

            impl<A: Allocator> Arena<A> {
                const CHUNK: Layout = Layout::new::<[u64; 512]>();

                fn push(&mut self, value: u64) -> NonNull<u64> {
                    if self.chunks.is_empty() || self.used == Self::CHUNK.size() {
                        self.chunks.push(self.allocator.allocate(Self::CHUNK).unwrap().cast());
                        self.used = 0;
                    }
                    // SAFETY: a number fits behind what is used of the chunk.
                    let place = unsafe { self.chunks.last().unwrap().add(self.used) }.cast();
                    self.used += 8;
                    // SAFETY: the place is in the chunk, aligned, and no other value's.
                    unsafe { place.write(value) };
                    place
                }
            }

            impl<A: Allocator> Drop for Arena<A> {
                fn drop(&mut self) {
                    for &chunk in &self.chunks {
                        // SAFETY: the chunk was allocated for this layout, and the arena ends.
                        unsafe { self.allocator.deallocate(chunk, Self::CHUNK) };
                    }
                }
            }

            #[test]
            fn an_arena_takes_its_chunks_from_a_heap() {
                let heap = heap();
                let mut arena = Arena { allocator: &heap, chunks: std::vec::Vec::new(), used: 0 };
                let places: std::vec::Vec<_> = (0..5000).map(|n| arena.push(n)).collect();
                // SAFETY: the arena is alive, and has written a number to each place.
                assert!(places.iter().zip(0..).all(|(place, n)| unsafe { place.read() } == n));
            }
        }
    };
}

#[cfg(feature = "allocator-api2")]
version!(api2_04, allocator_api2::alloc, allocator_api2::vec);
#[cfg(feature = "allocator-api2-02")]
version!(api2_02, allocator_api2_02::alloc, allocator_api2_02::vec);
#[cfg(feature = "nightly")]
version!(of_std, std::alloc, std::vec);

#[cfg(feature = "allocator-api2-02")]
#[test]
fn a_map_of_hashbrown_lives_in_a_heap() {
    use hashbrown::HashMap;
    use std::hash::RandomState;

    let heap = heap();
    let mut squares = HashMap::with_hasher_in(RandomState::new(), &heap);
    squares.extend((0_u64..20_000).map(|n| (n, n * n)));
    squares.retain(|n, _| n % 2 == 0);
    squares.shrink_to_fit();
    assert!(squares.len() == 10_000 && squares[&1998] == 1998 * 1998);
    let of_process: HashMap<u64, u64, RandomState, Freestone> = squares.iter().map(|(&a, &b)| (a, b)).fold(
        HashMap::with_hasher_in(RandomState::new(), Freestone),
        |mut all, (a, b)| {
            all.insert(a, b);
            all
        },
    );
    assert_eq!(of_process.len(), 10_000);
}
