//! Streams of correct calls, between which OS pages of spans are purged, and heaps end: nothing is reported.
use super::*;
use crate::testing::OneHeap;
use crate::thread::{returns, route};
use freestone_testkit::ops::{Op, Player, SplitMix};
use proptest::prelude::*;

/// Sizes of blocks, most of which straddle OS pages now and then.
const SIZES: [usize; 13] = [0, 20, 40, 100, 300, 700, 1300, 3000, 5000, 9000, 18_000, 32_766, 70_000];

const N_CASES: u32 = if cfg!(miri) { 1 } else { 48 };

const N_STEPS: usize = if cfg!(miri) { 60 } else { 1500 };

/// What the threads of a program do: two heaps, of which one calls at a time.
struct Program<'world> {
    world: &'world World,
    random: SplitMix,
    heaps: [Own<'world, Fake>; 2],
    player: Player<OneHeap<'world>>,
    sizes: Vec<usize>,
    n_ids: usize,
    /// Of a hundred calls so many allocate.
    share: usize,
}

impl<'world> Program<'world> {
    fn draw(world: &'world World, seed: u64) -> Self {
        let mut random = SplitMix(seed);
        world.set(key::MISUSE, "ignore");
        world.set(key::DECAY_MS, "0");
        world.set(key::DIRTY_MAX, ["0", "64k", "16m"][random.below(3)]);
        let heaps = [world.heap(), world.heap()];
        let player = Player::new(OneHeap { world, heap: heaps[0] });
        let sizes: Vec<usize> = (0..1 + random.below(3)).map(|_| SIZES[random.below(SIZES.len())]).collect();
        let bytes = sizes.iter().max().copied().unwrap_or(0).max(100);
        // Some OS pages of blocks, or some spans.
        let n_ids = (10 + random.below(1 << 20) / bytes).min(600);
        Self { world, random, heaps, player, sizes, n_ids, share: 60 }
    }

    /// One call of the program, and what heaps do by themselves at any time.
    fn step(&mut self) {
        let id = self.random.below(self.n_ids) as u32;
        let bytes = self.sizes[self.random.below(self.sizes.len())] + self.random.below(9);
        let op = match self.random.below(100) {
            at if at < self.share => Op::Allocate { id, bytes, align: 1 << self.random.below(6) },
            at if at % 8 == 0 => Op::Reallocate { id, bytes },
            _ => Op::Deallocate { id },
        };
        self.player.step(op).unwrap();
        let turn = self.random.below(2);
        match self.random.below(400) {
            0..10 => self.player.subject.heap = self.heaps[turn],
            10..16 => returns::sweep(self.heaps[turn]),
            16..20 => upkeep::flush_all(self.heaps[turn]),
            20..23 => {
                upkeep::flush_all(self.heaps[turn]);
                returns::sweep(self.heaps[turn]);
            }
            23..26 => route::send_all(self.heaps[turn]),
            26 => {
                // The other one adopts its spans, or the next.
                self.world.end(self.heaps[turn]);
                self.heaps[turn] = self.world.heap();
                self.player.subject.heap = self.heaps[turn];
            }
            27..29 => self.share = [5, 30, 60, 95][self.random.below(4)],
            _ => {}
        }
    }

    /// Everything is freed, and the heaps end.
    fn end(mut self) {
        self.player.drain().unwrap();
        self.heaps.into_iter().for_each(|heap| self.world.end(heap));
        self.world.check().unwrap();
        let PageStats { small_pages, large_pages, .. } = self.world.shared.pages.stats();
        assert_eq!((small_pages, large_pages), (0, 0), "everything came home");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: N_CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_reported_of_a_correct_program_whatever_is_purged(
        seed in any::<u64>(),
        level in proptest::sample::select(&["checks", "full"][..]),
        os_page_log2 in proptest::sample::select(&[12u32, 12, 13, 14][..]),
    ) {
        seen::take();
        let world = World::hardened(1 << os_page_log2, level);
        let mut program = Program::draw(&world, seed);
        for number in 0..N_STEPS {
            program.step();
            prop_assert_eq!(crimes(), [], "step {}", number);
            if number % 100 == 0 {
                prop_assert_eq!(world.check(), Ok(()), "step {}", number);
            }
        }
        program.end();
        prop_assert_eq!(crimes(), []);
    }
}
