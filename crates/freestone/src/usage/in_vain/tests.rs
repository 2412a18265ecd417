use super::*;

const DECAY_MS: u32 = 1000;
const MIB: i64 = 1 << 20;

/// A process in which 40 MiB inside spans have gone back, at 5000 ms.
fn gone() -> InVain {
    let in_vain = InVain::new();
    assert_eq!(in_vain.allowed_bytes(0, 5000, DECAY_MS), 0);
    assert_eq!(in_vain.allowed_bytes(40 * MIB, 5000, DECAY_MS), 0);
    in_vain
}

#[test]
fn half_of_what_was_faulted_in_again_may_stay() {
    let in_vain = gone();
    assert_eq!(in_vain.allowed_bytes(40 * MIB, 5010, DECAY_MS), 0, "nothing was faulted in");
    assert_eq!(in_vain.allowed_bytes(10 * MIB, 5020, DECAY_MS), 15 << 20);
    assert_eq!(in_vain.allowed_bytes(10 * MIB, 5030, DECAY_MS), 15 << 20, "it is counted once");
    assert_eq!(in_vain.allowed_bytes(50 * MIB, 5040, DECAY_MS), 15 << 20, "new spans were not faulted in");
    assert_eq!(in_vain.allowed_bytes(90 * MIB, 5050, DECAY_MS), 15 << 20);
    assert_eq!(in_vain.allowed_bytes(60 * MIB, 5999, DECAY_MS), 30 << 20);
}

#[test]
fn in_each_decay_time_half_is_forgotten_and_what_was_faulted_in_after_one_does_not_count() {
    let in_vain = gone();
    assert_eq!(in_vain.allowed_bytes(0, 5999, DECAY_MS), 20 << 20);
    for (now_ms, allowed_mib) in [(6000, 10), (6999, 10), (7000, 5), (7999, 5), (20_000, 2)] {
        assert_eq!(in_vain.allowed_bytes(0, now_ms, DECAY_MS) >> 20, allowed_mib, "at {now_ms} ms");
    }
    in_vain.allowed_bytes(40 * MIB, 20_000, DECAY_MS);
    assert_eq!(in_vain.allowed_bytes(0, 21_000, DECAY_MS) >> 20, 1, "it may have been long ago");
    let (never, wrapped) = (gone(), InVain::new());
    assert_eq!(never.allowed_bytes(0, 0x8000_0000, u32::MAX), 20 << 20, "nothing decays");
    assert_eq!(gone().allowed_bytes(0, 5000, 0), 0, "nothing stays");
    wrapped.allowed_bytes(0, u32::MAX - 10, DECAY_MS);
    wrapped.allowed_bytes(40 * MIB, u32::MAX, DECAY_MS);
    assert_eq!(wrapped.allowed_bytes(0, 100, DECAY_MS), 20 << 20, "the clock has wrapped");
}
