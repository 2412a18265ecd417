//! Values in pools: dropped once, moved out unchanged, returned if there is no block.
#![allow(unsafe_code, reason = "the pools' memory is handed over as pointers")]

mod subject;

use freestone_pool::{Error, HeapFallback, Local, Pool, Shape, SharedPool};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use subject::Memory;

struct Counted(Rc<Cell<usize>>, [u64; 3]);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn memory<T>(count: usize) -> Memory {
    let shape = Shape::of::<T>(count).unwrap();
    Memory::new(shape.region_bytes().max(shape.shared_region_bytes()), 0xA5)
}

#[test]
fn a_value_is_dropped_once_and_its_block_comes_back() {
    let (memory, dropped) = (memory::<Counted>(2), Rc::new(Cell::new(0)));
    // SAFETY: the memory outlives the pool.
    let pool = unsafe { Pool::local_at(2, memory.start, memory.bytes()) }.unwrap();
    let mut first = pool.allocate(Counted(dropped.clone(), [1; 3])).unwrap();
    let second = pool.allocate(Counted(dropped.clone(), [2; 3])).unwrap();
    let refused = pool.allocate(Counted(dropped.clone(), [3; 3])).err().unwrap();
    assert_eq!((refused.value.1, dropped.get()), ([3; 3], 0));
    assert!(matches!(refused.error, Error::Exhausted { count: 2, .. }));
    first.1[0] = 7;
    let moved = first.into_inner();
    assert_eq!((moved.1, dropped.get()), ([7, 1, 1], 0));
    let third = pool.allocate(moved).unwrap();
    drop((second, third));
    assert_eq!(dropped.get(), 2);
    assert!(pool.into_source().into_inner().close().is_ok());
}

#[test]
fn a_forgotten_handle_is_found_when_the_pool_ends() {
    let memory = memory::<u32>(4);
    // SAFETY: the memory outlives the pool.
    let pool = unsafe { Pool::local_at(4, memory.start, memory.bytes()) }.unwrap();
    std::mem::forget(pool.allocate(7_u32).unwrap());
    let (_pool, error) = pool.into_source().into_inner().close().err().unwrap();
    assert_eq!(error, Error::InUse { block: memory.start.addr().get(), n_blocks: 1 });
}

#[test]
fn values_that_hold_values_of_the_same_pool_drop_in_order() {
    struct Node<'p>(#[allow(dead_code)] Option<freestone_pool::Handle<'p, Node<'p>, Local<'p>>>);
    let memory = memory::<Node<'_>>(10);
    // SAFETY: the memory outlives the pool.
    let pool = std::mem::ManuallyDrop::new(unsafe { Pool::local_at(10, memory.start, memory.bytes()) }.unwrap());
    let mut list = None;
    for _ in 0..10 {
        list = pool.allocate(Node(list)).ok();
    }
    assert!(list.is_some());
    drop(list);
    assert!(pool.allocate(Node(None)).is_ok());
}

#[test]
fn a_block_too_small_for_the_type_is_refused() {
    let memory = memory::<u64>(4);
    let shared = |shape| memory.shared(shape);
    let small = Pool::<[u64; 2], _>::new(shared(Shape::new(8, 2).unwrap()));
    assert_eq!(small.err(), Some(Error::RegionTooSmall { bytes: 8, least: 16 }));
    #[repr(align(64))]
    struct Wide;
    assert_eq!(Pool::<Wide, _>::new(shared(Shape::new(8, 2).unwrap())).err(), Some(Error::BadAlignment { align: 8 }));
}

#[test]
fn a_pool_with_a_heap_as_fallback_never_refuses() {
    let memory = memory::<String>(1);
    let fixed = memory.fixed(Shape::of::<String>(1).unwrap()).with_fallback(HeapFallback(System));
    let pool = Pool::new(Local::new(fixed)).unwrap();
    let names: Vec<_> = (0..5).map(|number| pool.allocate(format!("name {number}")).unwrap()).collect();
    assert_eq!(names.iter().map(|name| name.len()).sum::<usize>(), 30);
}

/// A heap whose blocks lie in itself, and are never used again.
struct Arena(UnsafeCell<[u64; 16]>, Cell<usize>);

// SAFETY: each block has words of its own, behind those of the blocks before it.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let first = self.1.get();
        self.1.set(first + layout.size().div_ceil(8));
        if self.1.get() > 16 || layout.align() > 8 {
            return std::ptr::null_mut();
        }
        self.0.get().cast::<u64>().wrapping_add(first).cast()
    }
    unsafe fn dealloc(&self, _block: *mut u8, _layout: Layout) {}
}

#[test]
fn values_in_a_fallback_whose_blocks_lie_in_itself_stay_valid() {
    let memory = memory::<u64>(1);
    let arena = Arena(UnsafeCell::new([0; 16]), Cell::new(0));
    let fixed = memory.fixed(Shape::of::<u64>(1).unwrap()).with_fallback(HeapFallback(arena));
    let pool: Pool<u64, _> = Pool::new(Local::new(fixed)).unwrap();
    let mut values: Vec<_> = (0..17).map(|value| pool.allocate(value).unwrap()).collect();
    assert!(pool.allocate(17).is_err());
    drop(values.pop());
    values.iter_mut().for_each(|value| **value += 1);
    assert_eq!(values.iter().map(|value| **value).sum::<u64>(), 16 * 17 / 2);
}

/// The system's allocator, which first takes two values of the pool that calls it, and drops them.
struct Reentrant<'p>(&'p Cell<Option<&'p Reentered<'p>>>);

type Reentered<'p> = Pool<u64, Local<'p, HeapFallback<Reentrant<'p>>>>;

impl Reentrant<'_> {
    fn use_pool(&self) {
        if let Some(pool) = self.0.take() {
            let values = [5, 6].map(|value| pool.allocate(value).unwrap());
            assert_eq!(values.map(|value| *value), [5, 6]);
            self.0.set(Some(pool));
        }
    }
}

// SAFETY: the blocks are those of `System`.
unsafe impl GlobalAlloc for Reentrant<'_> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.use_pool();
        // SAFETY: this function's contract is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.use_pool();
        // SAFETY: the block was allocated there with this layout: this function's contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[test]
fn a_fallback_may_use_the_pool_that_calls_it() {
    let (memory, link) = (memory::<u64>(1), Cell::new(None));
    let fixed = memory.fixed(Shape::of::<u64>(1).unwrap()).with_fallback(HeapFallback(Reentrant(&link)));
    let pool = std::mem::ManuallyDrop::new(Pool::new(Local::new(fixed)).unwrap());
    link.set(Some(&*pool));
    let values: Vec<_> = (0..4).map(|value| pool.allocate(value).unwrap()).collect();
    assert_eq!(values.into_iter().map(|value| *value).sum::<u64>(), 6);
}

#[test]
fn a_value_that_panics_when_it_is_dropped_gives_its_block_back() {
    struct Fragile(Rc<Cell<usize>>);
    impl Drop for Fragile {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            assert!(self.0.get() > 2, "the first two drops panic");
        }
    }
    let (memory, dropped) = (memory::<Fragile>(1), Rc::new(Cell::new(0)));
    // SAFETY: the memory outlives the pool.
    let pool = unsafe { Pool::local_at(1, memory.start, memory.bytes()) }.unwrap();
    for _ in 0..2 {
        let handle = pool.allocate(Fragile(dropped.clone())).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(handle))).is_err());
    }
    drop(pool.allocate(Fragile(dropped.clone())).unwrap());
    assert_eq!(dropped.get(), 3);
    assert!(pool.into_source().into_inner().close().is_ok());
}

#[test]
fn handles_of_a_shared_pool_move_between_threads() {
    let memory = memory::<Arc<usize>>(64);
    // SAFETY: the memory outlives the pool.
    let shared = unsafe { SharedPool::new_at(Shape::of::<Arc<usize>>(64).unwrap(), memory.start, memory.bytes()) };
    let pool = Pool::new(shared.unwrap()).unwrap();
    let value = Arc::new(5);
    std::thread::scope(|scope| {
        let (pool, value) = (&pool, &value);
        let (sender, receiver) = std::sync::mpsc::sync_channel(8);
        scope.spawn(move || {
            for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
                sender.send(pool.allocate(Arc::clone(value)).unwrap()).unwrap();
            }
        });
        assert!(receiver.into_iter().all(|handle| **handle == 5));
    });
    assert_eq!(Arc::strong_count(&value), 1);
    assert!(pool.into_source().close().is_ok());
}
