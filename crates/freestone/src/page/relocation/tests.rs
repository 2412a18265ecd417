use crate::page::tests::MIB;
use crate::testing::{World, fill, free, is_filled, reallocate};
use freestone_os::Errno;
use freestone_os::fake::Failure;

/// The first call that a moving `realloc` makes is the move. The kernel unmaps the target and then refuses to move.
#[test]
fn a_block_whose_move_fails_when_its_target_is_unmapped_moves_elsewhere_with_its_contents() {
    for errno in [Errno::NOMEM, Errno::EXIST] {
        for for_good in [false, true] {
            let world = World::hardened(4096, "off");
            let heap = world.heap();
            let (block, wall) = (heap.allocate(MIB, 1).start, heap.allocate(MIB, 1).start);
            fill(block, 9, MIB);
            let room = heap.allocate(40 * MIB, 1).start;
            free(heap, room);
            world.shared.pages.purge();
            world.os().plan_half_way(Failure { nth_call: 0, errno, for_good });
            let moved = reallocate(heap, block, 3 * MIB);
            world.os().plan(None);
            assert!(!moved.is_null() || for_good);
            let lost = world.shared.pages.stats();
            assert_eq!(
                (lost.reserved_pages, lost.foreign_pages),
                if errno == Errno::NOMEM { (16, 0) } else { (0, 16) }
            );
            let kept = if moved.is_null() { block } else { moved };
            assert!(is_filled(kept, 9, MIB), "{errno:?}: lost");
            assert!(world.os().is_untouched_outside(), "{errno:?}: memory that is not mapped was written");
            world.check().unwrap();
            [kept, wall].into_iter().for_each(|block| free(heap, block));
            world.check().unwrap();
        }
    }
}
