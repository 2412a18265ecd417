//! Where the heap of a process is: finds the words that the library publishes (`api/heap_map.rs` there).

use crate::leaks::memory::{Memory, words_in};
use crate::symbols::mapping::Mapping;
use anyhow::{Result, bail};
use freestone::door::{HEAP_MAP_MAGIC, HEAP_MAP_VERSION};

/// The level of hardening at which the map is exact, as its place among the words of the option.
const DEFAULT_HARDENING: u64 = 1;

/// Words before the sizes of blocks.
const HEADER_WORDS: usize = 40;

/// More size classes than any version has.
const MOST_CLASSES: usize = 256;

/// Most words of a map.
const MOST_WORDS: usize = HEADER_WORDS + MOST_CLASSES;

/// One past the highest address of a program on any processor.
pub(super) const ADDRESS_BOUND: u64 = 1 << 57;

/// More bytes than a page of any version has, and than a record, a bitmap or a small block.
const MOST_PAGE_BYTES: u64 = 1 << 20;

/// More bytes than the tables of the heap profile have.
const MOST_TABLE_BYTES: u64 = 1 << 31;

/// What the library publishes.
///
/// Wide because: it is a record of another program's, word by word.
#[derive(Clone, Debug, Default)]
pub(super) struct HeapMap {
    /// Address of page 0.
    pub(super) base: u64,
    /// Number of pages.
    pub(super) n_pages: u64,
    /// Address of the record of page 0.
    pub(super) records: u64,
    /// Address of the bitmap of page 0.
    pub(super) bitmaps: u64,
    /// Address of the page map.
    pub(super) page_map: u64,
    /// One past the last address of pages and metadata.
    pub(super) end: u64,
    /// The secret of watched heaps.
    pub(super) secret: [u64; 2],
    /// Where the address of the tables of the heap profile is, and the places in them, as the library states them.
    pub(super) profile: u64,
    /// See [`HeapMap::profile`].
    pub(super) profile_places: Vec<u64>,
    /// Bytes of an OS page.
    pub(super) os_page_bytes: u64,
    /// Bytes of a page.
    pub(super) page_bytes: u64,
    /// Bytes of a record.
    pub(super) record_bytes: u64,
    /// Bytes of the bitmap of a page.
    pub(super) bitmap_bytes: u64,
    /// Where in a record the number of its pages is.
    pub(super) pages_at: usize,
    /// Its word of uncarved OS pages.
    pub(super) fresh_at: usize,
    /// Its kind.
    pub(super) kind_at: usize,
    /// Its class.
    pub(super) class_at: usize,
    /// Whether it is a watched heap's.
    pub(super) watched_at: usize,
    /// The kind of spans of small blocks.
    pub(super) kind_small: u8,
    /// The kind of large blocks.
    pub(super) kind_large: u8,
    /// The entry in the page map of a large block that is live.
    pub(super) entry_large: u32,
    /// The mark of free blocks.
    pub(super) mark: u32,
    /// Where in a block it is.
    pub(super) mark_at: usize,
    /// The number behind the mark of the first block of a stretch is so many times that of its blocks.
    pub(super) stretch_unit: u32,
    /// Bytes of a block of each class.
    pub(super) block_bytes: Vec<u64>,
}

impl HeapMap {
    /// The maps in the writable memory of the process's modules: one for each copy of the library.
    ///
    /// # Errors
    /// A map is of another version, or the heap is hardened more or less than by default.
    pub(super) fn find_all(memory: &Memory, mappings: &[Mapping]) -> Result<Vec<Self>> {
        let mut places = Vec::new();
        // The map is among a module's initialised data, a private copy of its file. Files that the program maps may be larger than memory.
        for mapping in
            mappings.iter().filter(|mapping| mapping.is_file() && mapping.is_writable() && mapping.is_private())
        {
            memory.scan(mapping.start, mapping.end, |address, bytes| {
                let begins = |(at, word)| (word == HEAP_MAP_MAGIC[0]).then_some(address + at);
                places.extend((0..).step_by(8).zip(words_in(bytes)).filter_map(begins));
            });
        }
        let words_at = |&place: &u64| words_in(&memory.bytes(place, MOST_WORDS * 8)).collect::<Vec<u64>>();
        let maps = places.iter().map(words_at).filter(|words| words.starts_with(&HEAP_MAP_MAGIC));
        maps.map(|words| Self::parse(memory, &words)).collect()
    }

    /// Reads the words of a map, and the secret that it says the place of. The heap of a process that never allocated has no pages.
    fn parse(memory: &Memory, words: &[u64]) -> Result<Self> {
        let version = words.get(2).copied().unwrap_or_default();
        if version != HEAP_MAP_VERSION {
            bail!(
                "the library in the process describes its heap in version {version}, and this command reads version \
                 {HEAP_MAP_VERSION}; use the command that was built with the library"
            );
        }
        if words.len() < HEADER_WORDS {
            bail!("the library's description of its heap is cut short");
        }
        let base = words[3];
        let harden = words[10];
        if base != 0 && harden != DEFAULT_HARDENING {
            bail!("leaks are found only at harden=default of the process; explicit heaps may be hardened more");
        }
        let n_classes = words[HEADER_WORDS - 1];
        let block_bytes = words.get(HEADER_WORDS..HEADER_WORDS + n_classes.min(MOST_CLASSES as u64) as usize);
        let map = Self {
            base,
            n_pages: words[4],
            records: words[5],
            bitmaps: words[6],
            page_map: words[7],
            end: words[8],
            secret: [0, 8].map(|at| memory.word(words[11].wrapping_add(at)).unwrap_or(0)),
            profile: words[12],
            profile_places: words[13..25].to_vec(),
            os_page_bytes: words[9],
            page_bytes: words[25],
            record_bytes: words[26],
            bitmap_bytes: words[27],
            pages_at: words[28] as usize,
            fresh_at: words[29] as usize,
            kind_at: words[30] as usize,
            class_at: words[31] as usize,
            watched_at: words[32] as usize,
            kind_small: words[33] as u8,
            kind_large: words[34] as u8,
            entry_large: words[35] as u32,
            mark: words[36] as u32,
            mark_at: words[37] as usize,
            stretch_unit: words[38] as u32,
            block_bytes: block_bytes.unwrap_or_default().to_vec(),
        };
        if !map.is_sound() {
            bail!("the library's description of its heap is damaged");
        }
        Ok(map)
    }

    /// Whether the numbers are those of a heap, small enough that none of their sums and products overflows: a program may have written to them.
    fn is_sound(&self) -> bool {
        let addresses = [self.base, self.records, self.bitmaps, self.page_map, self.end];
        let of_a_page = [self.record_bytes, self.bitmap_bytes, self.os_page_bytes, self.mark_at as u64];
        let in_record = [self.pages_at, self.fresh_at, self.kind_at, self.class_at, self.watched_at];
        addresses.iter().all(|&address| address < ADDRESS_BOUND)
            && self.page_bytes.is_power_of_two()
            && (64..=MOST_PAGE_BYTES).contains(&self.page_bytes)
            && self.n_pages <= ADDRESS_BOUND / MOST_PAGE_BYTES
            && of_a_page.iter().all(|&bytes| bytes <= MOST_PAGE_BYTES)
            && in_record.iter().all(|&at| (at as u64) < self.record_bytes)
            && !self.block_bytes.is_empty()
            && self.block_bytes.iter().all(|&bytes| (1..=MOST_PAGE_BYTES).contains(&bytes))
            && self.profile_places.iter().all(|&place| place < MOST_TABLE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The map of a heap of 100 pages, with two classes.
    fn words() -> Vec<u64> {
        let mut words = vec![0; HEADER_WORDS];
        words[..3].copy_from_slice(&[HEAP_MAP_MAGIC[0], HEAP_MAP_MAGIC[1], HEAP_MAP_VERSION]);
        words[3..9].copy_from_slice(&[1 << 32, 100, 1 << 33, 1 << 34, 1 << 35, 1 << 36]);
        words[9..11].copy_from_slice(&[4096, DEFAULT_HARDENING]);
        words[25..].copy_from_slice(&[65536, 32, 512, 0, 8, 4, 5, 6, 1, 2, 7, 9, 4, 64, 2]);
        words.extend([16, 32]);
        words
    }

    #[test]
    fn a_map_is_found_in_a_private_copy_of_a_file_and_large_mappings_that_nothing_was_written_to_are_not_read() {
        let own = Memory::of(std::process::id() as i32);
        // Behind other words, so that the map begins within the mapping.
        let words = [vec![HEAP_MAP_MAGIC[0]; 3], words()].concat();
        let start = words.as_ptr() as u64;
        let mapping = |start, bytes, rights: &str, path: &str| Mapping {
            start,
            end: start + bytes,
            rights: rights.into(),
            path: path.into(),
            ..Mapping::default()
        };
        let bytes = words.len() as u64 * 8;
        let n_found = |mapping| HeapMap::find_all(&own, &[mapping]).unwrap().len();
        assert_eq!(n_found(mapping(start, bytes, "rw-p", "/lib/x.so")), 1);
        assert_eq!(n_found(mapping(start, bytes, "rw-s", "/lib/x.so")), 0);
        assert_eq!(n_found(mapping(start, bytes, "r--p", "/lib/x.so")), 0);
        assert_eq!(n_found(mapping(start, bytes, "rw-p", "")), 0);
        assert_eq!(n_found(mapping(1 << 16, 1 << 40, "rw-s", "/data")), 0);
        assert_eq!(n_found(mapping(1 << 16, 1 << 36, "rw-p", "/data")), 0);
    }

    #[test]
    fn numbers_that_are_none_of_a_heap_are_said_to_be_damaged() {
        let own = Memory::of(std::process::id() as i32);
        let with = |at: usize, number| {
            let mut words = words();
            words[at] = number;
            HeapMap::parse(&own, &words)
        };
        assert_eq!(with(3, 1 << 32).unwrap().block_bytes, [16, 32]);
        // Addresses and the number of pages; places in the profile's tables; bytes of pages and records; places in records; classes and their blocks.
        let too_large = (3..9).chain(13..26).chain(26..33).chain([37, 39, 40]);
        let damaged = too_large.map(|at| (at, 1 << 60)).chain([25, 26, 39, 41].map(|at| (at, 0)));
        for (at, number) in damaged.chain([(25, 65537), (30, 32)]) {
            let error = with(at, number).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains("is damaged"), "{at}: {error}");
        }
    }
}
