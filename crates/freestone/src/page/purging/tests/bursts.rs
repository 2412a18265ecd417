//! Memory of bursts that repeat.
use super::*;

/// Builds a heap of `mib`, of blocks of `size`, and frees it.
fn burst(heap: Own<'_, Fake>, mib: usize, size: usize) {
    let blocks: Vec<_> = (0..mib * MIB / size).map(|_| heap.allocate(size, 1).start).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
}

/// As [`burst`], by heaps in turn, and frees every 61st block, then the next one of each 61: spans become empty together at the end.
fn scattered_burst(heaps: &[Own<'_, Fake>], mib: usize, size: usize) {
    let owners = heaps.iter().cycle().take(mib * MIB / size);
    let blocks: Vec<_> = owners.map(|&heap| (heap, heap.allocate(size, 1).start)).collect();
    (0..61).for_each(|first| blocks.iter().skip(first).step_by(61).for_each(|&(heap, block)| free(heap, block)));
}

#[test]
fn bursts_that_repeat_keep_their_memory_be_it_of_small_or_large_blocks_until_the_decay_time() {
    for size in [512, 16 << 10, 5 * PAGE_BYTES] {
        let world = World::hardened(4096, "off");
        world.set(key::THP, "off");
        let heap = world.heap();
        let purged = |n: usize| world.purged_by(|| (0..n).for_each(|_| burst(heap, 64, size)));
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
        let purged = world.purged_by(|| burst(heap, 64, 16 << 10));
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
    let purged = Pages::saturating_from(world.shared.pages.purged_bytes() >> PAGE_BYTES_LOG2);
    assert!(purged.to_bytes().0 > 70 * MIB, "{purged:?}");
    let mut state = world.shared.pages.lock();
    state.churn.note_fresh(Pages(100_000), false, world.shared.pages.decay(), || world.shared.pages.now());
    assert_eq!(state.churn.raised(Pages::ZERO, Pages::ZERO), Pages(purged.0 / 2));
}

/// Blocks of 1 KiB of which every 16th stays, so that no span becomes empty.
struct Waves<'a> {
    heap: Own<'a, Fake>,
    blocks: Vec<*mut u8>,
    /// Each wave is allocated by a thread that has ended when `heap`'s thread frees it.
    by_others: bool,
}

impl Waves<'_> {
    /// Allocates up to 48 MiB, and frees all but every 16th block, those of one span after those of others. Returns how many bytes were purged.
    fn wave(&mut self, world: &World) -> usize {
        world.purged_by(|| {
            let missing = 48 * 1024 - self.blocks.len();
            let other = self.by_others.then(|| world.heap());
            let heap = other.unwrap_or(self.heap);
            self.blocks.extend((0..missing).map(|_| heap.allocate(1024, 1).start));
            other.inspect(|&other| world.end(other));
            self.blocks.sort_unstable();
            let (stay, go): (Vec<_>, Vec<_>) = self.blocks.iter().enumerate().partition(|(at, _)| at % 16 == 0);
            go.into_iter().for_each(|(_, &block)| free(self.heap, block));
            self.blocks = stay.into_iter().map(|(_, &block)| block).collect();
        })
    }
}

/// Waves, after which little is needed. Returns how much the first of them has purged.
fn repeat_waves(waves: &mut Waves<'_>, world: &World) -> usize {
    world.os().advance_ms(5000);
    let first = waves.wave(world);
    assert!(first > 20 * MIB, "a single burst: {first}");
    let next: usize = (0..6).map(|_| waves.wave(world)).sum();
    let later: usize = (0..6).map(|_| waves.wave(world)).sum();
    assert!(next <= 4 * first && later <= first / 2, "{first}, {next}, {later}");
    first
}

/// That what stayed goes back while something is done twelve times, half a decay time after each other, and not when it is done at once.
fn goes_back(mut waves: Waves<'_>, world: &World, later: impl Fn(Own<'_, Fake>)) {
    let first = repeat_waves(&mut waves, world);
    let at_once = world.purged_by(|| later(waves.heap));
    assert!(at_once < 3 * MIB, "{at_once} of {first}");
    let in_the_end = world.purged_by(|| {
        for _ in 0..12 {
            world.os().advance_ms(500);
            later(waves.heap);
        }
    });
    assert!(in_the_end > first - 4 * MIB, "{in_the_end} of {first} went back when the bursts had ended");
    assert!(world.shared.usage.free_in_spans() <= 17 * MIB as i64);
    waves.blocks.iter().for_each(|&block| free(waves.heap, block));
    world.check().unwrap();
}

/// Their thread goes on with little, but more than its bins hold.
#[test]
fn memory_inside_spans_that_repeated_bursts_need_stays_until_they_end() {
    let world = World::hardened(4096, "off");
    let waves = Waves { heap: world.heap(), blocks: Vec::new(), by_others: false };
    goes_back(waves, &world, |heap| burst(heap, 2, 512));
}

#[test]
fn memory_inside_spans_without_an_owner_stays_as_long_and_goes_back_with_what_threads_do() {
    let world = World::hardened(4096, "off");
    let waves = Waves { heap: world.heap(), blocks: Vec::new(), by_others: true };
    goes_back(waves, &world, |heap| burst(heap, 2, 512));
}

#[test]
fn memory_inside_spans_without_an_owner_goes_back_in_the_background() {
    let world = World::hardened(4096, "off");
    let waves = Waves { heap: world.heap(), blocks: Vec::new(), by_others: true };
    goes_back(waves, &world, |_| world.shared.release_in_spans());
}

/// More than goes back while the lock of a class is held once.
#[test]
fn memory_inside_spans_without_an_owner_goes_back_with_one_call_that_asks_for_it() {
    let world = World::hardened(4096, "off");
    let mut waves = Waves { heap: world.heap(), blocks: Vec::new(), by_others: true };
    let first = repeat_waves(&mut waves, &world);
    let purged = world.purged_by(|| {
        world.shared.central.release_os_pages(&world.shared.pages, &world.shared.usage, None);
    });
    assert!(purged > first.max(32 * MIB), "{purged}");
    waves.blocks.iter().for_each(|&block| free(waves.heap, block));
    world.check().unwrap();
}

/// What went back inside spans of one class, and is needed by another one, could not have stayed for it.
#[test]
fn bursts_of_other_classes_do_not_count_as_the_same_burst_again() {
    for n_heaps in [1, 40] {
        let world = World::hardened(4096, "off");
        world.os().advance_ms(5000);
        let heaps: Vec<_> = (0..n_heaps).map(|_| world.heap()).collect();
        (8..16).for_each(|size_kib| scattered_burst(&heaps, 64, size_kib << 10));
        let (pages, now_ms) = (&world.shared.pages, world.shared.pages.now().0);
        let allowed = world.shared.usage.in_vain().allowed_bytes(pages.uncarved.bytes_and_ended(), now_ms, 1000);
        assert!(allowed < 2 * MIB as u64, "{n_heaps} heaps: {allowed}");
    }
}

#[test]
fn what_is_live_and_what_stays_inside_spans_are_no_more_than_ever_was_live() {
    let world = World::hardened(4096, "off");
    let (usage, heap) = (&world.shared.usage, world.heap());
    let mut waves = Waves { heap, blocks: Vec::new(), by_others: false };
    repeat_waves(&mut waves, &world);
    let (free_bytes, excess) = (usage.free_in_spans(), world.shared.pages.beyond_what_was_in_vain(usage));
    assert!(free_bytes > 40 * MIB as i64 && excess < 2 * MIB as i64, "{free_bytes}, {excess}");
    let others: Vec<_> = (0..40).map(|_| heap.allocate(MIB, 1).start).collect();
    heap.publish_live(0);
    let (free_bytes, excess) = (usage.free_in_spans(), world.shared.pages.beyond_what_was_in_vain(usage));
    assert!(free_bytes > 40 * MIB as i64 && excess > 32 * MIB as i64, "{free_bytes}, {excess}");
    others.into_iter().chain(waves.blocks).for_each(|block| free(heap, block));
    world.check().unwrap();
}

/// Whoever owns the spans: OS pages that went back and were never faulted in again did not go back in vain.
#[test]
fn os_pages_of_spans_that_have_ended_did_not_go_back_in_vain() {
    for by_others in [false, true] {
        let world = World::hardened(4096, "off");
        world.os().advance_ms(5000);
        let mut waves = Waves { heap: world.heap(), blocks: Vec::new(), by_others };
        assert!(waves.wave(&world) > 20 * MIB);
        waves.blocks.drain(..).for_each(|block| free(waves.heap, block));
        let pages = &world.shared.pages;
        let now_ms = pages.now().0;
        let allowed = world.shared.usage.in_vain().allowed_bytes(pages.uncarved.bytes_and_ended(), now_ms, 1000);
        assert!(allowed < MIB as u64, "{allowed}, with spans of others: {by_others}");
        world.check().unwrap();
    }
}

/// Most OS pages go back inside spans, which end before their class needs these again. With many heaps, spans of long blocks have no owner.
#[test]
fn bursts_that_are_freed_in_any_order_keep_their_memory() {
    for (size, n_heaps) in [(1024, 1), (16 << 10, 1), (16 << 10, 40)] {
        let world = World::hardened(4096, "off");
        let heaps: Vec<_> = (0..n_heaps).map(|_| world.heap()).collect();
        let purged = |n: usize| world.purged_by(|| (0..n).for_each(|_| scattered_burst(&heaps, 64, size)));
        let [first, next, later] = [1, 10, 10].map(purged);
        assert!(first > 40 * MIB, "{size}, {n_heaps} heaps: {first}");
        assert!(next <= 4 * first && later <= first / 2, "{size}, {n_heaps} heaps: {first}, {next}, {later}");
        world.check().unwrap();
    }
}
