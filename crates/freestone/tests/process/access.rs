//! The checks of memory functions, and the map that a tracer finds: what the process's allocator says about addresses.
use crate::{ALLOCATOR, MIB, alone};
use freestone::door::{self, Access, CheckedRange, HEAP_MAP_MAGIC, HEAP_MAP_VERSION, check_access, checked_range};
use std::{env, fs};

/// The access of a memory function.
fn access(is_write: bool) -> impl FnOnce() -> Access {
    move || Access { function: "memcpy", is_write }
}

/// A block of `size` bytes of sevens, which stays allocated.
fn block(size: usize) -> *mut u8 {
    let block = door::allocate(size);
    assert!(!block.is_null());
    // SAFETY: the block has as many bytes.
    unsafe { block.write_bytes(7, size) };
    block
}

/// Frees a block that the test does not use any more.
fn free(block: *mut u8) {
    // SAFETY: no code uses the block any more.
    unsafe { door::free(block) };
}

/// At an access that must not be reported.
fn no_report() -> Access {
    panic!("a report of an access that is right")
}

#[test]
fn nothing_is_worth_a_check_below_the_level_full() {
    for level in ["off", "default", "checks"] {
        alone(&[("HARDEN", level)], || {
            free(block(100));
            assert_eq!(checked_range(), CheckedRange::Nothing);
        });
    }
}

#[test]
fn at_the_level_full_the_range_has_every_block_and_nothing_else() {
    alone(&[("HARDEN", "full")], || {
        let blocks = [block(1), block(40_000), block(5 * MIB)];
        let CheckedRange::Blocks(start, bytes) = checked_range() else { panic!("no range") };
        let is_inside = |address: usize| (start.addr()..start.addr() + bytes).contains(&address);
        assert!(blocks.iter().all(|block| is_inside(block.addr())) && bytes > 1 << 30);
        let foreign = 0_u8;
        assert!(!is_inside((&raw const foreign).addr()));
        blocks.into_iter().for_each(free);
    });
}

#[test]
fn an_access_inside_a_block_is_right_wherever_it_begins_and_ends() {
    alone(&[("HARDEN", "full")], || {
        for size in [1, 24, 100, 5000, 40_000, 3 * MIB] {
            let block = block(size);
            for (first, bytes) in [(0, size), (size - 1, 1), (size / 2, size - size / 2), (0, 0), (size, 0)] {
                check_access(block.addr() + first, bytes, no_report);
            }
            free(block);
            check_access(block.addr(), 0, no_report);
        }
        let foreign = 0_u8;
        check_access((&raw const foreign).addr(), 100, no_report);
    });
}

#[test]
fn an_access_beyond_a_blocks_end_or_in_a_freed_block_is_reported_with_its_place() {
    let said = alone(&[("HARDEN", "full"), ("MISUSE", "report"), ("BACKGROUND", "off")], || {
        let (small, large) = (block(24), block(100_000));
        check_access(small.addr(), 25, access(true));
        check_access(small.addr() + 20, usize::MAX - 10, access(false));
        check_access(large.addr() + 70_000, 30_001, access(true));
        free(small);
        check_access(small.addr() + 3, 4, access(false));
        let damaged = block(40);
        let trailer = damaged.wrapping_add(44).cast::<u32>();
        // SAFETY: a block for 40 bytes has 48, of which the last four are its trailer, which is put back before the block is freed.
        let whole = unsafe { trailer.read() };
        // SAFETY: as above.
        unsafe { trailer.write(!whole) };
        check_access(damaged.addr(), 4, access(false));
        // SAFETY: as above.
        unsafe { trailer.write(whole) };
        free(damaged);
        free(large);
    });
    let Some(said) = said else { return };
    let lines: Vec<_> = said.lines().filter(|line| line.starts_with("freestone: ")).collect();
    let expected = [
        ("memcpy writes beyond the end of a block: 0x", "(24 bytes requested), 25 bytes at offset 0 (by thread "),
        ("memcpy reads beyond the end of a block: 0x", "(24 bytes requested), 18446744073709551605 bytes at offset 20"),
        ("memcpy writes beyond the end of a block: 0x", "(100000 bytes requested), 30001 bytes at offset 70000 "),
        ("memcpy reads in a freed block: 0x", ", 4 bytes at offset 3 (by thread "),
        ("write behind the end of a block: 0x", "-byte block), at offset "),
    ];
    assert_eq!(lines.len(), expected.len(), "{said}");
    for (line, (start, place)) in lines.iter().zip(expected) {
        assert!(line.contains(start) && line.contains(place), "{line}");
    }
}

/// Numbers in this program's writable memory.
fn words_at(address: u64, n: usize) -> Vec<u64> {
    let first = std::ptr::with_exposed_provenance::<u64>(address as usize);
    let word = |at| {
        // SAFETY: the caller read the address from the program's map of memory, or from the map of the heap, which has as many words.
        unsafe { first.wrapping_add(at).read_volatile() }
    };
    (0..n).map(word).collect()
}

/// Where the map of the heap is: found as `freestone leaks` finds it, by its first words in the writable memory of a module.
fn find_map() -> Vec<u64> {
    let maps = fs::read_to_string("/proc/self/maps").expect("a process may read its own map");
    let program = fs::read_link("/proc/self/exe").expect("a program has a path");
    // The program's last writable stretches may have no name.
    let of_program = maps.lines().filter(|line| line.contains(" rw-p ") && line.ends_with(&*program.to_string_lossy()));
    for line in of_program {
        let (start, rest) = line.split_once('-').expect("two addresses");
        let end = rest.split_once(' ').expect("two addresses").0;
        let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).expect("an address"));
        let found = (start..end - 16).step_by(8).find(|&at| words_at(at, 2) == HEAP_MAP_MAGIC);
        if let Some(at) = found {
            return words_at(at, 15);
        }
    }
    panic!("no map of the heap in {maps}");
}

/// The words are those that `crates/freestone/src/api/heap_map.rs` lists: magic (2), version, base, pages, tables (4), bytes of an OS page, hardening,
/// the secret, the heap profile.
#[test]
fn the_map_of_the_heap_has_the_place_of_every_table() {
    let levels = ["off", "default", "checks", "full"];
    for level in levels {
        alone(&[("HARDEN", level), ("BACKGROUND", "off")], || {
            let level = env::var("FREESTONE_HARDEN").expect("the test sets it");
            let number = levels.iter().position(|name| *name == level).expect("one of these") as u64;
            let small = block(100);
            let map = find_map();
            assert_eq!((map[2], map[10], map[9]), (HEAP_MAP_VERSION, number, 4096));
            let (base, n_pages) = (map[3], map[4]);
            let end = base + n_pages * 65_536;
            assert!((base..end).contains(&(small.addr() as u64)), "{base:#x} {n_pages}");
            // The tables lie one behind the other, and their end is that of the memory for them.
            let tables = &map[5..9];
            assert!(tables.iter().all(|&table| table != 0) && tables[..3].iter().all(|&table| table < tables[3]));
            let distances = [(tables[0], tables[3]), (tables[1], tables[3]), (tables[2], tables[3])];
            assert!(distances.iter().all(|(start, end)| end - start >= n_pages), "{map:x?}");
            assert!(map[11] != 0 && map[12] != 0);
            free(small);
            assert!(ALLOCATOR.stats().n_threads > 0);
        });
    }
}
