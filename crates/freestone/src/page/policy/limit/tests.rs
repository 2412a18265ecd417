use super::*;
use freestone_base::units::PAGE_BYTES;

fn limits(soft: u32, hard: u32) -> Limits {
    let bytes = |pages: u32| (pages > 0).then_some(pages as usize * PAGE_BYTES);
    Limits::new(bytes(soft), bytes(hard)).unwrap()
}

fn usage(in_use: u32, free_with_memory: u32, purging: u32) -> Usage {
    Usage { in_use: Pages(in_use), free_with_memory: Pages(free_with_memory), purging: Pages(purging) }
}

#[test]
fn without_limits_nothing_is_refused_and_either_limit_works_without_the_other() {
    assert_eq!(Limits::new(None, None), None);
    assert_eq!(limits(100, 0), Limits { soft: Pages(100), hard: Pages::MAX });
    assert_eq!(limits(0, 100), Limits { soft: Pages::MAX, hard: Pages(100) });
}

#[test]
fn memory_goes_back_when_use_and_free_memory_pass_the_lower_limit() {
    for limits in [limits(100, 200), limits(0, 100), limits(100, 0), limits(200, 100)] {
        assert!(!limits.are_short(usage(50, 40, 0), Pages(10)));
        assert!(limits.are_short(usage(50, 40, 0), Pages(11)));
    }
}

#[test]
fn the_soft_limit_refuses_nothing_and_the_hard_one_counts_what_is_still_being_purged() {
    assert!(!limits(100, 0).refuse(usage(1000, 0, 0), Pages(1000)));
    assert!(!limits(100, 200).refuse(usage(190, 50, 0), Pages(10)), "free memory can go back");
    assert!(limits(100, 200).refuse(usage(190, 0, 0), Pages(11)));
    assert!(limits(100, 200).refuse(usage(100, 90, 90), Pages(11)));
    assert!(limits(0, 200).refuse(usage(u32::MAX, 0, 0), Pages(u32::MAX)), "sums do not wrap");
}

#[test]
fn an_allocation_waits_for_purges_only_if_it_fits_once_they_are_done() {
    let both = limits(100, 200);
    assert!(both.await_purges(usage(80, 32, 32), Pages(15)), "it fits the soft limit then");
    assert!(!both.await_purges(usage(80, 5, 5), Pages(15)), "it fits already");
    assert!(
        !both.await_purges(usage(120, 32, 32), Pages(15)),
        "it passes the soft limit in any case, and not the hard one"
    );
    assert!(both.await_purges(usage(160, 32, 32), Pages(15)), "it fits the hard limit then");
    assert!(!both.await_purges(usage(190, 32, 32), Pages(15)), "it is refused in any case");
}

#[test]
fn pressure_is_reported_once_and_again_when_a_64th_more_is_in_use_or_after_it_was_over() {
    let (limits, mut pressure) = (limits(640, 0), Pressure::NONE);
    let mut told = |in_use| pressure.rises(limits, Pages(in_use));
    assert!(!told(640));
    assert!(told(641));
    assert!(!told(651), "10 more are a 64th");
    assert!(told(652));
    assert!(!told(650));
    assert!(!told(600));
    assert!(told(641), "it was over in between");
}

#[test]
fn raising_the_soft_limit_moves_the_next_report_with_it() {
    let mut pressure = Pressure::NONE;
    assert!(pressure.rises(limits(100, 0), Pages(101)));
    assert!(!pressure.rises(limits(1000, 0), Pages(110)));
    assert!(!pressure.rises(limits(1000, 0), Pages(1000)));
    assert!(pressure.rises(limits(1000, 0), Pages(1001)));
}

#[test]
fn fifteen_sixteenths_of_the_control_groups_limit_are_ours() {
    assert_eq!(soft_limit_of_group(1 << 30), 960 << 20);
    assert!(soft_limit_of_group(u64::MAX) < u64::MAX, "the product does not wrap");
}
