//! Memory of bursts that repeat.
use super::*;

/// Builds a heap of `mib`, of blocks of `size`, and frees it.
fn burst(heap: Own<'_, Fake>, mib: usize, size: usize) {
    let blocks: Vec<_> = (0..mib * MIB / size).map(|_| heap.allocate(size, 1).start).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
}

/// How many bytes go back while `act` runs.
fn purged_by(world: &World, act: impl FnOnce()) -> usize {
    let before = world.os().purged_bytes();
    act();
    (world.os().purged_bytes() - before) as usize
}

#[test]
fn bursts_that_repeat_keep_their_memory_be_it_of_small_or_large_blocks_until_the_decay_time() {
    for size in [512, 16 << 10, 5 * PAGE_BYTES] {
        let world = World::hardened(4096, "off");
        world.set(key::THP, "off");
        let heap = world.heap();
        let purged = |n: usize| purged_by(&world, || (0..n).for_each(|_| burst(heap, 64, size)));
        let first = purged(1);
        let dirty = dirty_bytes(&world);
        assert!(
            first > 40 * MIB && dirty <= 21 * MIB as u64,
            "{size}: a single burst keeps {dirty}, {first} went back"
        );
        // Of large blocks, which dirty memory stays for as soon as they come and go, a second burst may find all that it needs.
        let second = purged(1);
        assert!(second > 24 * MIB || size > PAGE_BYTES, "{size}: two bursts keep half of one, {second} went back");
        assert!(dirty_bytes(&world) <= 37 * MIB as u64 || size > PAGE_BYTES, "{size}: {}", dirty_bytes(&world));
        let next = purged(10);
        assert!(next <= 80 * MIB, "{size}: {next} bytes were purged in vain");
        let later = purged(10);
        assert!(later <= 16 * MIB, "{size}: {later} bytes are still purged in vain");
        assert!(dirty_bytes(&world) <= 72 * MIB as u64, "{size}: more than a burst needs stays");
        world.os().advance_ms(1000);
        world.shared.pages.purge_due_now();
        assert_eq!(dirty_bytes(&world), 0, "{size}");
        world.check().unwrap();
    }
}

#[test]
fn a_thread_that_goes_on_gives_back_what_bursts_left_once_they_are_over() {
    let world = World::hardened(4096, "off");
    let heap = world.heap();
    (0..12).for_each(|_| burst(heap, 64, 16 << 10));
    assert!(dirty_bytes(&world) > 40 * MIB as u64);
    world.os().advance_ms(1000);
    for _ in 0..8 {
        world.os().advance_ms(250);
        burst(heap, 8, 16 << 10);
    }
    assert!(dirty_bytes(&world) <= 17 * MIB as u64, "{}", dirty_bytes(&world));
}

#[test]
fn bursts_keep_their_memory_as_long_as_they_find_it_before_the_decay_time() {
    let world = World::hardened(4096, "off");
    world.spend_early_purges();
    let heap = world.heap();
    (0..12).for_each(|_| burst(heap, 64, 16 << 10));
    for round in 0..6 {
        world.os().advance_ms(400);
        let purged = purged_by(&world, || burst(heap, 64, 16 << 10));
        assert!(purged <= 8 * MIB, "round {round}: {purged} bytes were purged");
    }
}

/// It goes back piece by piece.
#[test]
fn a_long_run_that_is_purged_for_its_amount_counts_once() {
    let world = World::hardened(4096, "off");
    world.set(key::THP, "off");
    world.spend_early_purges();
    let heap = world.heap();
    let block = heap.allocate(96 * MIB, 1).start;
    free(heap, block);
    let purged = Pages::saturating_from(world.os().purged_bytes() >> PAGE_BYTES_LOG2);
    assert!(purged.to_bytes().0 > 70 * MIB, "{purged:?}");
    let mut state = world.shared.pages.lock();
    state.churn.note_fresh(Pages(100_000), false, world.shared.pages.decay(), || world.shared.pages.now());
    assert_eq!(state.churn.raised(Pages::ZERO, Pages::ZERO), Pages(purged.0 / 2));
}

/// Blocks of 1 KiB of which every 16th stays, so that no span becomes empty.
struct Waves<'a> {
    heap: Own<'a, Fake>,
    blocks: Vec<*mut u8>,
}

impl Waves<'_> {
    /// Allocates up to 48 MiB, and frees all but every 16th block, those of one span after those of others. Returns how many bytes were purged.
    fn wave(&mut self, world: &World) -> usize {
        purged_by(world, || {
            let missing = 48 * 1024 - self.blocks.len();
            self.blocks.extend((0..missing).map(|_| self.heap.allocate(1024, 1).start));
            self.blocks.sort_unstable();
            let (stay, go): (Vec<_>, Vec<_>) = self.blocks.iter().enumerate().partition(|(at, _)| at % 16 == 0);
            go.into_iter().for_each(|(_, &block)| free(self.heap, block));
            self.blocks = stay.into_iter().map(|(_, &block)| block).collect();
        })
    }
}

#[test]
fn memory_inside_spans_that_repeated_bursts_need_stays_until_they_end() {
    let world = World::hardened(4096, "off");
    world.os().advance_ms(5000);
    let mut waves = Waves { heap: world.heap(), blocks: Vec::new() };
    let first = waves.wave(&world);
    assert!(first > 20 * MIB, "a single burst: {first}");
    let next: usize = (0..6).map(|_| waves.wave(&world)).sum();
    let later: usize = (0..6).map(|_| waves.wave(&world)).sum();
    assert!(next <= 4 * first && later <= first / 2, "{first}, {next}, {later}");
    // The thread goes on with little, but more than its bins hold.
    let in_the_end = purged_by(&world, || {
        for _ in 0..12 {
            world.os().advance_ms(500);
            burst(waves.heap, 2, 512);
        }
    });
    assert!(in_the_end > first - 4 * MIB, "{in_the_end} of {first} went back when the bursts had ended");
    assert!(world.shared.usage.free_in_spans() <= 17 * MIB as i64);
    waves.blocks.iter().for_each(|&block| free(waves.heap, block));
    world.check().unwrap();
}
