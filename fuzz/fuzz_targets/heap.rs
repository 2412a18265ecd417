//! Any stream on the heap over the fake kernel, on every size of OS page, with small bins, which short streams fill and empty; one of
//! the kernel's calls may fail, once or for good.
//! Built without a sanitizer: it sees nothing inside the fake kernel's memory, which is one allocation, and takes long over each.
#![no_main]

use freestone_os::Errno;
use freestone_os::fake::{Failure, Fake};
use freestone_testkit::ops::{Stream, Subject, play};
use heap::door::{Instance, InstanceHeap, key};
use libfuzzer_sys::fuzz_target;
use std::ptr::NonNull;

/// Bytes of the fake kernel's address range: more than one unit of pages.
const RANGE_BYTES: usize = 80 << 20;

/// One heap, as the subject of operation streams.
struct OneHeap<'i> {
    instance: &'i Instance<Fake>,
    heap: InstanceHeap<'i, Fake>,
}

impl Subject for OneHeap<'_> {
    type Error = ();

    fn allocate(&mut self, bytes: usize, align: usize) -> Result<NonNull<u8>, ()> {
        // SAFETY: streams have powers of two as alignments.
        NonNull::new(unsafe { self.heap.allocate(bytes, align) }).ok_or(())
    }

    unsafe fn reallocate(
        &mut self,
        block: NonNull<u8>,
        _old_bytes: usize,
        align: usize,
        bytes: usize,
    ) -> Result<NonNull<u8>, ()> {
        // SAFETY: the block is live (the trait's contract); streams have powers of two as alignments.
        NonNull::new(unsafe { self.heap.reallocate(block.as_ptr(), bytes, align) }).ok_or(())
    }

    unsafe fn deallocate(&mut self, block: NonNull<u8>, _bytes: usize, _align: usize) -> Result<(), ()> {
        // SAFETY: the block is live and given up (the trait's contract).
        unsafe { self.heap.free(block.as_ptr()) };
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        check(self.instance)
    }
}

fn check(instance: &Instance<Fake>) -> Result<(), String> {
    // SAFETY: the target has one thread.
    unsafe { instance.check() }.map_err(|broken| format!("{broken:?}"))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[pages, nth_call], rest)) = bytes.split_first_chunk() else { return };
    let instance = Box::new(Instance::new(Fake::new(4096 << (pages & 3), RANGE_BYTES)));
    let bin_max = [&b"1"[..], b"2", b"5", b"4096"][usize::from(pages >> 6)];
    instance.settings().set(key::BIN_MAX, bin_max).expect("within the option's bounds");
    if nth_call > 0 {
        let errno = [Errno::NOMEM, Errno::AGAIN, Errno::INVAL][usize::from(pages >> 4 & 3).min(2)];
        let for_good = pages & 8 != 0;
        instance.os().plan(Some(Failure { nth_call: u64::from(nth_call) - 1, errno, for_good }));
    }
    // SAFETY: the instance is boxed, and stays in its box.
    let Some(heap) = (unsafe { instance.heap() }) else { return };
    let player = play(&Stream::from_bytes(0, rest), OneHeap { instance: &instance, heap }, 16);
    assert_eq!(player.as_ref().err(), None);
    instance.os().plan(None);
    // The heap ends here.
    drop(player);
    assert_eq!(check(&instance), Ok(()));
});
