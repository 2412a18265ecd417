//! The standard interfaces: `GlobalAlloc`, and with the feature `allocator-api2` the collections that take an allocator.
#![allow(unsafe_code, reason = "the traits' own interface")]

use freestone_tlsf::{Locked, Sharded, Tlsf};
use std::alloc::{GlobalAlloc, Layout};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::mpsc;

/// Memory for heaps, aligned to 16.
struct Memory(Vec<MaybeUninit<u128>>);

impl Memory {
    fn new(bytes: usize) -> Self {
        Self(vec![MaybeUninit::uninit(); bytes / 16])
    }

    fn bytes(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the same memory, as bytes.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), size_of_val(&*self.0)) }
    }
}

fn locked(memory: &mut Memory) -> Locked<'_> {
    let heap = Locked::new(Tlsf::new());
    heap.lock().add_region(memory.bytes()).unwrap();
    heap
}

#[test]
fn the_global_interface_allocates_grows_zeroes_and_refuses() {
    let mut memory = Memory::new(1 << 16);
    let heap = locked(&mut memory);
    let layout = Layout::from_size_align(100, 64).unwrap();
    // SAFETY: blocks of this heap, given back once.
    let block = unsafe { heap.alloc_zeroed(layout) };
    // SAFETY: as above.
    assert!(block.addr().is_multiple_of(64) && (0..100).all(|at| unsafe { block.wrapping_add(at).read() } == 0));
    // SAFETY: as above.
    unsafe { block.write_bytes(7, 100) };
    // SAFETY: as above.
    let block = unsafe { heap.realloc(block, layout, 5000) };
    // SAFETY: as above.
    assert!(block.addr().is_multiple_of(64) && (0..100).all(|at| unsafe { block.wrapping_add(at).read() } == 7));
    // SAFETY: as above.
    assert!(unsafe { heap.realloc(block, Layout::from_size_align(5000, 64).unwrap(), 1 << 20) }.is_null());
    // SAFETY: as above.
    unsafe { heap.dealloc(block, layout) };
    // SAFETY: as above.
    assert!(unsafe { heap.alloc(Layout::from_size_align(1 << 20, 1).unwrap()) }.is_null());
    // SAFETY: as above.
    assert!(unsafe { heap.alloc(Layout::from_size_align(0, 1).unwrap()) }.is_null());
    let heap = heap.lock();
    assert_eq!((heap.check(), heap.leaks().count()), (Ok(()), 0));
}

/// A block on its way to the thread that frees it, with the byte and the size that were written.
struct Sent(NonNull<u8>, u8, usize);

// SAFETY: the receiver is the only one to use the block.
unsafe impl Send for Sent {}

/// Whether every byte of the block is still the sender's.
fn is_intact(Sent(block, mark, size): &Sent) -> bool {
    // SAFETY: the sender wrote the whole block.
    unsafe { std::slice::from_raw_parts(block.as_ptr(), *size) }.iter().all(|byte| byte == mark)
}

/// Every thread frees what the thread before it allocated. The heap is too small for all the blocks that a queue could
/// hold, so some requests are refused.
#[test]
fn shards_serve_threads_that_free_each_others_blocks() {
    let mut memory = Memory::new(1 << 18);
    let heap = Sharded::<4>::new(memory.bytes()).unwrap();
    let n = if cfg!(miri) { 20 } else { 2000 };
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel()).unzip();
    std::thread::scope(|scope| {
        for (thread, received) in receivers.into_iter().enumerate() {
            let (next, heap) = (senders[(thread + 1) % 4].clone(), &heap);
            let free = move |sent: Sent| {
                assert!(is_intact(&sent));
                // SAFETY: given back once.
                unsafe { heap.deallocate(sent.0).unwrap() };
            };
            scope.spawn(move || {
                for step in 0..n {
                    let (size, mark) = (1 + step % 300, (thread * 50 + step % 50) as u8);
                    if let Ok(block) = heap.allocate(size, 16) {
                        // SAFETY: a block of `size` bytes.
                        unsafe { block.write_bytes(mark, size) };
                        next.send(Sent(block, mark, size)).unwrap();
                    }
                    received.try_iter().take(usize::from(step % 3 == 2)).for_each(free);
                }
                drop(next);
                received.iter().for_each(free);
            });
        }
        drop(senders);
    });
    heap.each_shard(|shard| assert_eq!((shard.check(), shard.stats().used_blocks), (Ok(()), 0)));
}

#[cfg(feature = "allocator-api2")]
mod api2 {
    use super::*;
    use allocator_api2::alloc::Allocator;
    use allocator_api2::boxed::Box;
    use allocator_api2::vec::Vec as VecIn;

    #[test]
    fn a_vector_and_a_box_are_allocated_from_a_locked_heap_and_leave_no_block() {
        let mut memory = Memory::new(1 << 16);
        let heap = locked(&mut memory);
        let mut numbers = VecIn::new_in(&heap);
        (0..1000_u32).for_each(|number| numbers.push(number));
        numbers.truncate(10);
        numbers.shrink_to_fit();
        let boxed = Box::new_in([3_u64; 40], &heap);
        assert!(numbers.iter().copied().eq(0..10) && boxed.iter().all(|number| *number == 3));
        assert_eq!(heap.lock().leaks().count(), 2);
        drop((numbers, boxed));
        let nothing = Box::new_in((), &heap);
        drop(nothing);
        let heap = heap.lock();
        assert_eq!((heap.check(), heap.leaks().count()), (Ok(()), 0));
    }

    #[test]
    fn a_vector_that_outgrows_its_heap_gets_an_error_and_keeps_its_elements() {
        let mut memory = Memory::new(1 << 14);
        let heap = Sharded::<2>::new(memory.bytes()).unwrap();
        let mut bytes = VecIn::new_in(&heap);
        bytes.extend([9_u8; 100]);
        assert!(bytes.try_reserve(1 << 15).is_err());
        assert!(bytes.len() == 100 && bytes.iter().all(|byte| *byte == 9));
        assert!(Allocator::allocate(&&heap, Layout::from_size_align(1 << 15, 1).unwrap()).is_err());
    }
}
