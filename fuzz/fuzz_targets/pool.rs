//! Any stream on pools of any shape, over memory of zeroes and of others; each second free is refused.
#![no_main]

#[path = "../../crates/pool/tests/subject/mod.rs"]
mod subject;

use freestone_pool::{FixedPool, Shape};
use freestone_testkit::ops::{Stream, play};
use libfuzzer_sys::fuzz_target;
use subject::{AsHeap, Magazines, Memory};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[size, count, choice], rest)) = bytes.split_first_chunk() else { return };
    let shape = Shape::aligned(usize::from(size) * 2 + 1, usize::from(count) + 1, 1 << (choice & 7));
    let shape = shape.expect("small shapes are right");
    let stream = Stream::from_bytes(0, rest);
    let memory = |filling| Memory::new(shape.region_bytes().max(shape.shared_region_bytes()), filling);
    match choice >> 3 & 3 {
        0 => {
            let memory = memory(0);
            // SAFETY: the memory is zero, and no other code uses it.
            let pool = unsafe { FixedPool::new_zeroed_at(shape, memory.start, memory.bytes()) };
            assert_eq!(play(&stream, AsHeap::new(pool.expect("the memory suits")), 1).err(), None);
        }
        1 => {
            let memory = memory(0xA5);
            assert_eq!(play(&stream, AsHeap::new(memory.fixed(shape)), 1).err(), None);
        }
        _ => {
            let memory = memory(0xA5);
            let mut pool = memory.shared(shape);
            assert_eq!(play(&stream, AsHeap::new(Magazines::new(&pool)), 1).err(), None);
            assert_eq!(pool.check(), Ok(()));
            assert!(pool.close().is_ok());
        }
    }
});
