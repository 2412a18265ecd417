use super::*;
use crate::testing::World;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_name_ends_at_the_first_equals_sign() {
    assert_eq!(pair(b"decay_ms=10"), (&b"decay_ms"[..], &b"10"[..]));
    assert_eq!(pair(b"report=/tmp/a=b"), (&b"report"[..], &b"/tmp/a=b"[..]));
    assert_eq!(pair(b"misuse"), (&b"misuse"[..], &b""[..]));
}

#[test]
fn an_option_is_set_by_its_name_and_read_as_a_number() {
    let world = World::new(4096);
    assert_eq!(set(&world.shared, "decay_ms", "250"), Ok(()));
    assert_eq!(get(world.shared.settings(), "decay_ms"), Some(250));
    assert_eq!(set(&world.shared, "decay", "250"), Err(Mistake::UnknownKey));
    assert_eq!(get(world.shared.settings(), "decay"), None);
}

#[test]
fn the_path_of_the_report_is_read_only_at_the_start() {
    let world = World::new(4096);
    assert_eq!(set(&world.shared, "report", "/tmp/report"), Err(Mistake::OnlyAtStart));
}

/// What the start has begun, such as a trace, goes on making system calls.
#[test]
fn a_sandbox_begins_with_the_process_or_not_at_all() {
    let world = World::new(4096);
    assert_eq!(set(&world.shared, "sandbox", "on"), Err(Mistake::OnlyAtStart));
    assert!(!world.shared.settings().sandbox());
    assert_eq!(set_at_start(world.shared.settings(), b"sandbox", b"on"), Ok(()));
    assert_eq!(set(&world.shared, "sandbox", "off"), Err(Mistake::OnlyAtStart));
    assert!(world.shared.settings().sandbox());
}

#[test]
fn a_level_of_hardening_is_set_before_the_first_heap_and_refused_later() {
    let world = World::new(4096);
    assert_eq!(set(&world.shared, "harden", "checks"), Ok(()));
    let _heap = world.heap();
    assert_eq!(set(&world.shared, "harden", "full"), Err(Mistake::TooLate));
    assert_eq!(set(&world.shared, "harden", "very"), Err(Mistake::NotAWord));
    assert_eq!(world.shared.settings().harden(), Harden::Checks);
}

#[test]
fn a_privileged_process_takes_a_higher_level_of_hardening_and_nothing_else() {
    let settings = Settings::new();
    for (name, value, level) in [
        ("HARDEN", "off", Harden::Default),
        ("DECAY_MS", "7", Harden::Default),
        ("HARDEN", "very", Harden::Default),
        ("HARDEN", "full", Harden::Full),
        ("harden", "checks", Harden::Full),
    ] {
        raise_harden(&settings, name.as_bytes(), value.as_bytes());
        assert_eq!(settings.harden(), level, "{name}={value}");
    }
    assert_eq!(settings.decay_ms(), Some(1000));
}

#[test]
fn a_limit_below_what_is_in_use_is_refused_and_the_one_before_stays() {
    let world = World::new(4096);
    let heap = world.heap();
    assert_eq!(set(&world.shared, "limit", "32m"), Ok(()));
    let block = heap.allocate(8 << 20, 1).start;
    assert!(!block.is_null());
    for limit in ["limit", "limit_hard"] {
        let before = get(world.shared.settings(), limit);
        assert_eq!(set(&world.shared, limit, "4m"), Err(Mistake::BelowUse), "{limit}");
        assert_eq!(get(world.shared.settings(), limit), before, "{limit}");
        assert_eq!(set(&world.shared, limit, "16m"), Ok(()), "{limit}");
    }
}

#[test]
fn a_limit_of_exactly_what_is_in_use_is_taken() {
    let world = World::new(4096);
    let heap = world.heap();
    assert_eq!(set(&world.shared, "limit", "32m"), Ok(()));
    assert!(!heap.allocate(8 << 20, 1).start.is_null());
    let used = world.shared.pages.limited_bytes();
    assert_eq!(set(&world.shared, "limit_hard", &std::format!("{}", used - 1)), Err(Mistake::BelowUse));
    assert_eq!(set(&world.shared, "limit_hard", &std::format!("{used}")), Ok(()));
}

#[test]
fn a_path_that_is_too_long_is_a_mistake_at_the_start() {
    let settings = Settings::new();
    let path = [b'x'; 1024];
    assert_eq!(set_at_start(&settings, b"report", &path), Err(Mistake::OutOfRange));
    assert_eq!(set_at_start(&settings, b"REPORT", b"/tmp/report"), Ok(()));
    assert_eq!(set_at_start(&settings, b"reports", b"/tmp/report"), Err(Mistake::UnknownKey));
}

#[test]
fn no_thread_finds_a_limit_that_is_refused() {
    let world = World::new(4096);
    let heap = world.heap();
    assert!(!heap.allocate(8 << 20, 1).start.is_null());
    let shared = &world.shared;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..if cfg!(miri) { 100 } else { 200_000 } {
                assert_eq!(set(shared, "limit_hard", "4m"), Err(Mistake::BelowUse));
            }
            is_done.store(true, Ordering::Relaxed);
        });
        while !is_done.load(Ordering::Relaxed) {
            assert_eq!(shared.settings().limit_hard_bytes(), None);
        }
    });
}
