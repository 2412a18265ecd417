#![allow(unsafe_code)]
use super::bring_batch;
use crate::size_class::class_of;
use crate::testing::World;
use crate::thread::upkeep;
use freestone_base::units::PAGE_BYTES;
use std::collections::BTreeSet;
use std::vec::Vec;

/// The class's span is used up, so the batch comes from a new one, and with it the tick, which drains the inbox into the same bin. (The
/// inbox was empty when the refill looked at it: another thread filled it a moment later.)
#[test]
fn what_the_tick_drains_into_a_bin_stays_there_when_its_batch_arrives() {
    const BLOCK: usize = 64;
    let world = World::new(4096);
    let (owner, sender) = (world.heap(), world.heap());
    let class = class_of(BLOCK);
    // SAFETY: the heaps and the blocks are this test's.
    unsafe {
        let mut blocks: Vec<_> = (0..PAGE_BYTES / BLOCK).map(|_| owner.allocate(BLOCK, 1).start).collect();
        assert!(owner.bins().first(class).is_null(), "the span is used up");
        let sent = blocks.split_off(blocks.len() - 32);
        sent.iter().for_each(|&block| sender.free(block));
        world.os().advance_ms(10_000);
        bring_batch(owner, class);
        world.check().unwrap();
        let in_bin: BTreeSet<_> =
            core::iter::from_fn(|| Some(owner.bins().pop(class)).filter(|block| !block.is_null())).collect();
        assert!(sent.iter().all(|block| in_bin.contains(block)), "blocks were lost");
        in_bin.into_iter().chain(blocks).for_each(|block| owner.free(block));
        upkeep::flush_all(owner);
    }
    world.check().unwrap();
}
