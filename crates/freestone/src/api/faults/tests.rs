use super::*;
use crate::config::key;
use crate::guarded::pool::Wanted;
use crate::guarded::slot::Kind;
use crate::misuse::Misuse;
use crate::testing::World;
use freestone_base::units::PAGE_BYTES;

fn fault(address: usize) -> Fault {
    Fault { address, is_write: Some(true), registers: None }
}

#[test]
fn a_fault_elsewhere_is_foreign_and_one_beside_a_guarded_block_is_reported() {
    let world = World::new(4096);
    let settings = world.shared.settings();
    assert_eq!(judge(&world.shared, 1, &fault(0x1000)), Outcome::Foreign);
    let site = Site { thread: 1, stack: Stack::EMPTY };
    let wanted = Wanted { size: 32, align: 16, kind: Kind::new(1, 16, 0) };
    let (block, _) = world.shared.guarded.allocate(wanted, true, &site).unwrap();
    let behind = block.addr() + 32;
    let what = Misuse::BesideBlock { block_bytes: 32, size: Some(32), offset: 32, touch: Touch::Write };
    for (word, outcome) in [("abort", Outcome::Fatal), ("report", Outcome::Resume), ("ignore", Outcome::Resume)] {
        settings.set(key::MISUSE, word.as_bytes()).unwrap();
        assert_eq!(judge(&world.shared, 1, &fault(behind)), outcome, "{word}");
        assert_eq!(crate::misuse::seen::take(), [(what, block.addr())]);
    }
}

#[test]
fn an_access_to_a_block_of_no_bytes_is_reported_and_cannot_be_resumed() {
    let world = World::hardened(4096, "full");
    let settings = world.shared.settings();
    let block = world.heap().allocate(0, 1).start.addr();
    let what = Misuse::BesideBlock { block_bytes: 0, size: Some(0), offset: 0, touch: Touch::Write };
    for (word, outcome) in [("abort", Outcome::Fatal), ("report", Outcome::Foreign), ("ignore", Outcome::Foreign)] {
        settings.set(key::MISUSE, word.as_bytes()).unwrap();
        assert_eq!(judge(&world.shared, 1, &fault(block)), outcome, "{word}");
        assert_eq!(crate::misuse::seen::take(), [(what, block)]);
    }
}

#[test]
fn a_use_of_a_freed_large_block_and_an_overflow_into_a_guard_are_reported_with_block_and_sizes() {
    let world = World::hardened(4096, "full");
    world.set(key::MISUSE, "report");
    let heap = world.heap();
    let size = 4 * PAGE_BYTES - 100;
    let block = heap.allocate(size, 1).start;
    let (start, block_bytes, size) = (block.addr(), 4 * PAGE_BYTES, Some(size));
    let touch = Touch::Write;
    assert_eq!(judge(&world.shared, 1, &fault(start + block_bytes)), Outcome::Foreign);
    let offset = block_bytes.cast_signed();
    let behind = Misuse::BesideBlock { block_bytes, size, offset, touch };
    assert_eq!(crate::misuse::seen::take(), [(behind, start)]);
    crate::testing::free(heap, block);
    assert_eq!(judge(&world.shared, 1, &fault(start + 7)), Outcome::Foreign);
    let freed = Misuse::FreedBlock { block_bytes, size, offset: 7, touch };
    assert_eq!(crate::misuse::seen::take(), [(freed, start)]);
}

#[test]
fn an_overflow_out_of_a_span_names_its_last_block() {
    let world = World::hardened(4096, "full");
    world.set(key::MISUSE, "report");
    let span = crate::testing::span_of(&world, world.heap().allocate(1000, 1).start);
    let end = span.start().addr() + span.n_pages().to_bytes().0;
    assert_eq!(judge(&world.shared, 1, &fault(end)), Outcome::Foreign);
    let found = crate::misuse::seen::take();
    let [(Misuse::BesideBlock { block_bytes, size: None, offset, .. }, block)] = found[..] else { panic!("{found:?}") };
    assert_eq!(block + offset.cast_unsigned(), end);
    assert!((1000..1300).contains(&block_bytes) && offset.cast_unsigned() < 2 * block_bytes);
}
