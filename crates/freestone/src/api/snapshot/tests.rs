#![allow(unsafe_code)]
use super::*;
use crate::config::key;
use crate::span::Layout;
use freestone_os::Linux;
use std::boxed::Box;
use std::fs;
use std::vec::Vec;

/// Resident bytes of the mappings inside an address range, as the kernel tells them.
fn resident_bytes(layout: &Layout) -> u64 {
    let start = layout.base.addr();
    let end = layout.map.start().addr() + layout.n_pages * size_of::<u32>();
    let (mut inside, mut bytes) = (false, 0);
    for line in fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let first = line.split_whitespace().next().unwrap_or("");
        if let Some((from, _)) = first.split_once('-') {
            inside = usize::from_str_radix(from, 16).is_ok_and(|from| (start..end).contains(&from));
        } else if inside && first == "Rss:" {
            bytes += line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024;
        }
    }
    bytes
}

/// Several heaps over the kernel; every byte of every block is written, and nearly every block of every span is used.
#[test]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn statistics_add_up_to_what_the_kernel_says_is_resident() {
    let (shared, threads) = (Box::new(Shared::new(Linux)), Threads::new());
    shared.settings().set(key::THP, b"off").unwrap();
    // SAFETY: what the heaps share is boxed and outlives them; each is used by this thread, and not after its death.
    let heaps: Vec<_> = (0..3).map(|_| unsafe { threads.birth(&shared) }.unwrap()).collect();
    let stats = take(&shared, &threads);
    let said = (stats.live, stats.cached, stats.fragmented);
    assert_eq!(said, (0, 0, 0), "thread heaps are metadata, and nothing else");
    let mut blocks = Vec::new();
    for heap in &heaps {
        for at in 0..40_000 {
            let size = if at % 1000 == 999 { 500_000 } else { [16, 200, 1000, 3000][at % 4] };
            let block = heap.allocate(size, 1).start;
            // SAFETY: the block was allocated just now, and all of it may be used.
            unsafe { block.write_bytes(1, heap.usable_bytes(block).unwrap()) };
            blocks.push((*heap, block));
        }
    }
    let (stats, resident) = (take(&shared, &threads), resident_bytes(shared.pages.layout()));
    assert_eq!(stats.live + stats.cached + stats.fragmented + stats.dirty + stats.metadata, stats.committed);
    assert!(stats.committed.abs_diff(resident) * 50 <= resident, "{resident} bytes are resident: {stats:?}");
    // What goes back in single OS pages of spans stays counted as fragmented: from here on the sum is an upper bound.
    for (heap, block) in blocks {
        // SAFETY: the block is this test's, which does not use it again.
        unsafe { heap.free(block) };
    }
    let stats = take(&shared, &threads);
    assert!(resident_bytes(shared.pages.layout()) <= stats.committed, "more is resident than {stats:?}");
    for heap in heaps {
        // SAFETY: the heap was born above, and is not used again.
        unsafe { threads.death(heap) };
    }
    shared.pages.purge();
    let (stats, resident) = (take(&shared, &threads), resident_bytes(shared.pages.layout()));
    assert_eq!(stats.committed, stats.metadata, "nothing else is left: {stats:?}");
    assert!(resident <= stats.metadata, "{resident} bytes are resident for {stats:?}");
}
