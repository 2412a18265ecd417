use super::*;
use crate::config::key;
use crate::guarded::pool::Wanted;
use crate::misuse::Misuse;
use crate::testing::World;

fn fault(address: usize) -> Fault {
    Fault { address, is_write: Some(true), registers: None }
}

#[test]
fn a_fault_elsewhere_is_foreign_and_one_beside_a_guarded_block_is_reported() {
    let world = World::new(4096);
    let settings = world.shared.settings();
    assert_eq!(judge(&world.shared, 1, &fault(0x1000)), Outcome::Foreign);
    let site = Site { thread: 1, stack: Stack::EMPTY };
    let wanted = Wanted { size: 32, align: 16, class: 1 };
    let (block, _) = world.shared.guarded.allocate(wanted, true, &site).unwrap();
    let behind = block.addr() + 32;
    let what = Misuse::BesideGuarded { block_bytes: 32, size: 32, offset: 32, touch: Touch::Write };
    for (word, outcome) in [("abort", Outcome::Fatal), ("report", Outcome::Resume), ("ignore", Outcome::Resume)] {
        settings.set(key::MISUSE, word.as_bytes()).unwrap();
        assert_eq!(judge(&world.shared, 1, &fault(behind)), outcome, "{word}");
        assert_eq!(crate::misuse::seen::take(), [(what, block.addr())]);
    }
}
