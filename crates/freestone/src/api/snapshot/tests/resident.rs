//! What is resident.
use super::*;
use crate::span::layout::BITMAP_BYTES;
use crate::span::{PageIndex, Span};
use crate::thread::returns;
use freestone_os::System;
use std::boxed::Box;
use std::fs;

/// Resident bytes of the mappings of pages and their metadata, as the kernel tells them. Other mappings may lie elsewhere in the address range, which
/// is not reserved: those of other tests, too.
fn resident_bytes(shared: &Shared<System>) -> u64 {
    let (layout, first) = (shared.pages.layout(), PageIndex(0));
    let n_pages = shared.pages.inspect(|state| state.runs.high_water()).0 as usize;
    let parts = [
        (layout.page_start(first).addr(), PAGE_BYTES),
        (layout.record(first).addr(), size_of::<Span>()),
        (layout.bitmap(first).addr(), BITMAP_BYTES),
        (layout.map.start().addr(), size_of::<u32>()),
    ];
    let is_inside = |from| parts.iter().any(|&(start, each)| (start..start + n_pages * each).contains(&from));
    let (mut inside, mut bytes) = (false, 0);
    for line in fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let first = line.split_whitespace().next().unwrap_or("");
        if let Some((from, _)) = first.split_once('-') {
            inside = usize::from_str_radix(from, 16).is_ok_and(is_inside);
        } else if inside && first == "Rss:" {
            bytes += line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024;
        }
    }
    bytes
}

/// That what is said to be resident is what the kernel says, and at most a 50th more, but for records that were never written.
fn agrees(stats: &Stats, shared: &Shared<System>) {
    let (said, resident) = (stats.resident(), resident_bytes(shared));
    assert!(said >= resident, "{resident} bytes are resident, more than {said} of {stats:?}");
    assert!(
        said - resident <= resident / 50 + stats.metadata,
        "{resident} bytes are resident, and not {said} of {stats:?}"
    );
}

/// Several heaps over the kernel, with a few blocks of many classes, then many of some, of which most are freed; every byte of every block is written.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads the kernel's list of mappings")]
#[cfg_attr(miri, ignore = "asks the kernel")]
fn statistics_add_up_to_what_the_kernel_says_is_resident() {
    let (shared, threads) = (Box::new(Shared::new(System)), Threads::new());
    shared.settings().set(key::THP, b"off").unwrap();
    // SAFETY: what the heaps share is boxed and outlives them; each is used by this thread, and not after its end.
    let heaps: Vec<_> = (0..3).map(|_| unsafe { threads.create(&shared) }.unwrap()).collect();
    let stats = take(&shared, &threads);
    let said = (stats.live, stats.cached, stats.fragmented);
    assert_eq!(said, (0, 0, 0), "thread heaps are metadata, and nothing else");
    let few: Vec<_> = heaps.iter().flat_map(|heap| (1..64).map(|n| (*heap, heap.allocate(n * 64, 1).start))).collect();
    // SAFETY: the blocks were allocated just now, and all of each may be used.
    few.iter().for_each(|(heap, block)| unsafe { block.write_bytes(1, heap.usable_bytes(*block).unwrap()) });
    agrees(&take(&shared, &threads), &shared);
    let mut blocks = few;
    for heap in &heaps {
        for at in 0..40_000 {
            let size = if at % 1000 == 999 { 500_000 } else { [16, 200, 1000, 3000][at % 4] };
            let block = heap.allocate(size, 1).start;
            // SAFETY: the block was allocated just now, and all of it may be used.
            unsafe { block.write_bytes(1, heap.usable_bytes(block).unwrap()) };
            blocks.push((*heap, block));
        }
    }
    agrees(&take(&shared, &threads), &shared);
    // Of every 50 blocks one stays, so that most OS pages of spans go back one by one.
    let (stay, go): (Vec<_>, Vec<_>) = blocks.into_iter().zip(0..).partition(|(_, n)| n % 50 == 0);
    for blocks in [go, stay] {
        for ((heap, block), _) in blocks {
            // SAFETY: the block is this test's, which does not use it again.
            unsafe { heap.free(block) };
        }
        heaps.iter().for_each(|heap| returns::sweep(*heap));
        shared.pages.purge();
        agrees(&take(&shared, &threads), &shared);
    }
    for heap in heaps {
        // SAFETY: the heap was created above, and is not used again.
        unsafe { threads.end(heap) };
    }
    shared.pages.purge();
    let (stats, resident) = (take(&shared, &threads), resident_bytes(&shared));
    assert_eq!(stats.committed, stats.metadata, "nothing else is left: {stats:?}");
    assert!(resident <= stats.metadata, "{resident} bytes are resident for {stats:?}");
}

/// The kernel may give memory to all of a span, or count what went back until it runs short.
#[test]
fn nothing_of_spans_is_said_to_have_no_memory_where_it_may_have_some() {
    for (key, value, knows) in [
        (key::PURGE, "dontneed", true),
        (key::PURGE, "free", false),
        (key::THP, "on", false),
        (key::THP, "off", true),
        (key::PREFAULT, "touch", false),
    ] {
        for is_huge in [false, true] {
            let world = World::new(4096);
            world.set(key, value);
            if is_huge {
                world.os().give_huge_pages_unasked();
            }
            let _ = world.heap().allocate(100, 1);
            let stats = take(&world.shared, &world.threads);
            let is_known = knows && (!is_huge || key == key::THP);
            assert_eq!(stats.resident() < stats.committed, is_known, "{value}, huge pages {is_huge}: {stats:?}");
        }
    }
}
