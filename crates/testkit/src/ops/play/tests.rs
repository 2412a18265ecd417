use super::*;
use crate::ops::{Mix, generate};
use std::alloc::{Layout, alloc, dealloc, realloc};

/// The system's allocator, with a fault on demand.
#[derive(Default)]
struct System {
    gives_the_same_block_twice: bool,
    last: Option<NonNull<u8>>,
}

fn layout(bytes: usize, align: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, align).ok().filter(|layout| layout.size() > 0)
}

impl Subject for System {
    type Error = ();
    fn allocate(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, ()> {
        if self.gives_the_same_block_twice && self.last.is_some() {
            return self.last.ok_or(());
        }
        // SAFETY: `layout` returns only layouts with at least one byte.
        self.last = NonNull::new(unsafe { alloc(layout(bytes, align).ok_or(())?) });
        self.last.ok_or(())
    }
    unsafe fn reallocate(
        &mut self,
        block: NonNull<u8>,
        old_bytes: usize,
        align: usize,
        bytes: usize,
    ) -> Result<NonNull<u8>, ()> {
        let old = layout(old_bytes, align).ok_or(())?;
        layout(bytes, align).ok_or(())?;
        // SAFETY: `alloc` or `realloc` returned the block with the old layout, and the new size is not 0.
        NonNull::new(unsafe { realloc(block.as_ptr(), old, bytes) }).ok_or(())
    }
    unsafe fn deallocate(&mut self, block: NonNull<u8>, bytes: usize, align: usize) -> Result<(), ()> {
        // SAFETY: `alloc` or `realloc` returned the block with this layout, and the player frees it once.
        unsafe { dealloc(block.as_ptr(), layout(bytes, align).ok_or(())?) };
        Ok(())
    }
}

#[test]
fn the_system_allocator_breaks_no_rule() {
    let mix = Mix { ids: 30, least_bytes: 1, most_bytes: 500, most_align: 64, reallocations_percent: 40 };
    let player = play(&generate(mix, 0, 2000, 1), System::default(), 1).unwrap();
    assert!(player.shadow.is_empty());
}

#[test]
fn an_allocator_that_hands_a_block_out_twice_is_caught() {
    let stream = Stream { region_bytes: 0, ops: (0..2).map(|id| Op::Allocate { id, bytes: 8, align: 1 }).collect() };
    let faulty = System { gives_the_same_block_twice: true, last: None };
    let Err(violation) = play(&stream, faulty, 1) else { panic!("the overlap was not seen") };
    assert!(violation.0.contains("overlaps"), "{violation}");
}
