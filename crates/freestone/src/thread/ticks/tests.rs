use super::*;

#[test]
fn a_tick_comes_once_in_a_decay_time_also_when_the_clock_wraps() {
    let ticks = Ticks::new();
    assert!(!ticks.begin_tick(999, 1000));
    assert!(ticks.begin_tick(1000, 1000));
    assert!(!ticks.begin_tick(1999, 1000));
    assert!(ticks.begin_tick(u32::MAX, 1000));
    assert!(!ticks.begin_tick(998, 1000));
    assert!(ticks.begin_tick(999, 1000));
}

#[test]
fn ticks_and_looks_are_counted_apart() {
    let ticks = Ticks::new();
    assert!(ticks.begin_tick(1000, 1000));
    assert!(ticks.begin_look(1000, 250));
    assert!(!ticks.begin_look(1249, 250));
    assert!(ticks.begin_look(1250, 250));
    assert!(!ticks.begin_tick(1999, 1000));
}

#[test]
fn with_a_decay_time_of_nothing_every_moment_is_due() {
    let ticks = Ticks::new();
    assert!(ticks.begin_tick(0, 0) && ticks.begin_tick(0, 0));
}
