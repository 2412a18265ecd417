extern crate std;

use super::*;
use std::string::ToString;

#[test]
fn every_error_says_what_happened_with_its_numbers() {
    let (address, block, other, bytes) = (0xabc0, 0xdef0, 0xfed0, 4711);
    let errors = [
        (Error::RegionMisaligned { address, bytes }, "0xabc0 4711"),
        (Error::RegionTooSmall { bytes, least: 48 }, "4711 48"),
        (Error::RegionTooLarge { bytes, most: 1024 }, "4711 1024"),
        (Error::RegionTooLow { address, least: 0x800 }, "0xabc0 0x800"),
        (Error::RegionOverlaps { address, other }, "0xabc0 0xfed0"),
        (Error::TooManyRegions { most: 4 }, "4"),
        (Error::NoSuchRegion { address }, "0xabc0"),
        (Error::RegionInUse { block, bytes }, "0xdef0 4711"),
        (Error::ZeroSize, "0"),
        (Error::BadAlignment { align: 24 }, "24"),
        (Error::TooLarge { bytes, most: 1024 }, "4711 1024"),
        (Error::Exhausted { bytes, align: 64 }, "4711 64"),
        (Error::Foreign { address }, "0xabc0"),
        (Error::Interior { address, block, bytes }, "0xabc0 0xdef0 4711"),
        (Error::DoubleFree { address, free_block: block, bytes }, "0xabc0 0xdef0 4711"),
        (Error::Overrun { block, bytes }, "0xdef0 4711"),
        (Error::Damaged { block }, "0xdef0"),
    ];
    for (error, numbers) in errors {
        let text = error.to_string();
        for number in numbers.split(' ') {
            assert!(text.contains(number), "{text:?} does not name {number}");
        }
        assert!(text.contains(": ") || text.contains(", "), "{text:?} says neither where nor what to do");
    }
}
