//! Values in pools: dropped once, moved out unchanged, returned if there is no block.
#![allow(unsafe_code, reason = "the pools' memory is handed over as pointers")]

mod subject;

use freestone_pool::{Error, HeapFallback, Local, Pool, Shape, SharedPool};
use std::alloc::System;
use std::cell::Cell;
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
