//! Blocks of no bytes at the level `full`, which can neither be read nor written (`guarded::empty_blocks`).

use crate::config::Harden;
use crate::size_class::GRANULE_BYTES;
use crate::span::family::Family;
use crate::thread::heap::own::Own;
use crate::thread::watched::examine::claim_mismatch;
use crate::thread::watched::request::{Claim, Request};
use freestone_os::Os;

/// Whether a block is asked for that should have no byte that can be accessed.
#[inline(always)]
fn is_wanted<O: Os>(own: Own<'_, O>, request: &Request) -> bool {
    request.room == 0 && is_wanted_here(own, request.align)
}

/// Blocks of explicit heaps end with their heap. A sandbox may refuse the calls that close pages.
#[cold]
fn is_wanted_here<O: Os>(own: Own<'_, O>, align: usize) -> bool {
    let settings = own.shared().settings();
    settings.harden() == Harden::Full && align <= GRANULE_BYTES && own.holdings().is_none() && !settings.sandbox()
}

/// A block without a byte that can be accessed, if one is asked for and there is one.
#[inline(always)]
pub(crate) fn allocate<O: Os>(own: Own<'_, O>, request: &Request) -> Option<*mut u8> {
    if is_wanted(own, request) { own.shared().empty.allocate(request.family as u8) } else { None }
}

/// Which functions free the block of no bytes at an address; `None` for an invalid one, which is reported.
#[cold]
pub(crate) fn family<O: Os>(own: Own<'_, O>, block: *mut u8) -> Option<Family> {
    match own.shared().empty.family_of(block.addr()) {
        Ok(number) => Family::of(number.into()),
        Err(what) => {
            own.report(what, block.addr());
            None
        }
    }
}

/// Frees the block of no bytes at an address, of which the program says something. What is wrong is reported.
#[cold]
pub(crate) fn free<O: Os>(own: Own<'_, O>, block: *mut u8, claim: Claim) {
    let Some(family) = family(own, block) else { return };
    let mismatch = claim_mismatch(family, (0, GRANULE_BYTES.ilog2()), claim);
    let freed = own.shared().empty.free(block.addr()).err();
    for what in [mismatch, freed].into_iter().flatten() {
        own.report(what, block.addr());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::misuse::{Misuse, seen};
    use crate::testing::{World, free as free_block, reallocate};

    fn is_empty_block(world: &World, block: *mut u8) -> bool {
        world.shared.empty.contains(block.addr())
    }

    #[test]
    fn malloc_of_nothing_returns_a_new_address_without_access_at_full_only() {
        for level in ["default", "checks", "full"] {
            let world = World::hardened(4096, level);
            let heap = world.heap();
            let blocks = [(); 3].map(|()| heap.allocate(0, 1).start);
            assert_eq!(blocks.map(|block| is_empty_block(&world, block)), [level == "full"; 3], "{level}");
            assert!(blocks[0] != blocks[1] && blocks[1] != blocks[2] && blocks[0] != blocks[2]);
            blocks.into_iter().for_each(|block| free_block(heap, block));
            assert!(seen::take().is_empty());
            world.check().unwrap();
        }
    }

    #[test]
    fn a_block_of_no_bytes_has_no_usable_bytes_and_is_resized_by_moving() {
        let world = World::hardened(4096, "full");
        let heap = world.heap();
        let block = heap.allocate(0, 1).start;
        assert_eq!(heap.usable_bytes(block), Some(0));
        let grown = reallocate(heap, block, 100);
        assert!(!grown.is_null() && !is_empty_block(&world, grown));
        assert!(heap.shared().empty.family_of(block.addr()).is_err(), "it was freed");
        let shrunk = reallocate(heap, grown, 0);
        assert!(is_empty_block(&world, shrunk));
        free_block(heap, shrunk);
        assert!(seen::take().is_empty());
    }

    #[test]
    fn a_second_free_an_interior_free_and_one_by_other_functions_are_reported() {
        let world = World::hardened(4096, "full");
        world.set(crate::config::key::MISUSE, "report");
        let heap = world.heap();
        let block = heap.allocate_for(Request::new(0, 1, Family::New)).start;
        free(heap, block, Claim::of(Family::C));
        assert_eq!(seen::take(), [(Misuse::WrongFamily { size: 0 }, block.addr())]);
        free_block(heap, block);
        assert_eq!(seen::take(), [(Misuse::DoubleFree { block_bytes: 0 }, block.addr())]);
        assert!(reallocate(heap, block, 10).is_null() && heap.usable_bytes(block).is_none());
        assert_eq!(seen::take().len(), 2);
        free_block(heap, block.wrapping_add(1));
        assert_eq!(seen::take(), [(Misuse::Foreign, block.addr() + 1)]);
    }

    #[test]
    fn explicit_heaps_and_larger_alignments_have_ordinary_blocks() {
        let world = World::hardened(4096, "full");
        let heap = world.heap();
        let aligned = heap.allocate(0, 64).start;
        assert!(aligned.addr().is_multiple_of(64) && !is_empty_block(&world, aligned));
        let explicit = world.explicit_heap();
        let block = explicit.enter().own().allocate(0, 1).start;
        assert!(!block.is_null() && !is_empty_block(&world, block));
        world.destroy(explicit);
        free_block(heap, aligned);
        world.check().unwrap();
    }
}
