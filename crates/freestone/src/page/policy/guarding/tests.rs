use super::*;

const LONG: Pages = Pages(LEAST.0);
const SHORT: Pages = Pages(LEAST.0 - 1);

#[test]
fn without_a_cost_only_long_blocks_of_new_memory_get_guards_and_only_markers() {
    let mut guarding = Guarding::NEW;
    let choose = |guarding: &Guarding, pages, is_fresh| guarding.choose(Wanted::WhereCheap, pages, is_fresh);
    assert_eq!(choose(&guarding, LONG, true), Some(GuardBy::Marker));
    assert_eq!(choose(&guarding, SHORT, true), None);
    assert_eq!(choose(&guarding, LONG, false), None);
    guarding.note_refusal(GuardBy::Marker, Errno::INVAL);
    assert_eq!(choose(&guarding, LONG, true), None);
    assert_eq!(Guarding::NEW.choose(Wanted::Never, LONG, true), None);
}

#[test]
fn if_all_are_wanted_a_kernel_without_markers_gives_access_rights_up_to_a_number() {
    let mut guarding = Guarding::NEW;
    guarding.note_refusal(GuardBy::Marker, Errno::INVAL);
    assert_eq!(guarding.choose(Wanted::WithMarkers, SHORT, false), None);
    for _ in 0..BY_RIGHTS_MOST {
        assert_eq!(guarding.choose(Wanted::Always, SHORT, false), Some(GuardBy::Rights));
        assert!(!guarding.has_to_be_said());
        guarding.count(GuardBy::Rights);
    }
    assert_eq!(guarding.choose(Wanted::Always, SHORT, false), None);
    assert!(guarding.has_to_be_said() && !guarding.has_to_be_said());
    guarding.discount(GuardBy::Rights);
    assert_eq!(guarding.choose(Wanted::Always, SHORT, false), Some(GuardBy::Rights));
}

#[test]
fn a_refusal_that_may_pass_is_forgotten_and_one_at_the_limit_of_mappings_is_a_limit() {
    let mut guarding = Guarding::NEW;
    guarding.note_refusal(GuardBy::Marker, Errno::NOMEM);
    assert_eq!(guarding.choose(Wanted::Always, LONG, true), Some(GuardBy::Marker));
    guarding.note_refusal(GuardBy::Marker, Errno::INVAL);
    guarding.count(GuardBy::Rights);
    guarding.note_refusal(GuardBy::Rights, Errno::AGAIN);
    assert_eq!(guarding.choose(Wanted::Always, LONG, true), Some(GuardBy::Rights));
    guarding.note_refusal(GuardBy::Rights, Errno::NOMEM);
    assert!(guarding.has_to_be_said());
}

#[test]
fn of_spans_one_behind_the_other_one_in_eight_has_a_guard_by_access_rights() {
    let mut guarding = Guarding::NEW;
    guarding.note_refusal(GuardBy::Marker, Errno::INVAL);
    let has_guard = |page: &usize| {
        guarding.draw_lot(page << 16);
        guarding.choose(Wanted::AtRandom, SHORT, true) == Some(GuardBy::Rights)
    };
    let n_guards = (0..8000).filter(has_guard).count();
    assert!((800..1200).contains(&n_guards), "{n_guards} of 8000");
}

/// A program that frees a span and gets it again draws with one address each time.
#[test]
fn of_the_lots_drawn_with_one_address_or_two_in_turn_one_in_eight_is_a_guard() {
    for (one, other) in [(0, 0), (1, 1), (2, 2), (3, 3), (77, 77), (0x7_1234, 0x7_1234), (5, 6), (0x10, 0x7FFF_0000)] {
        let mut guarding = Guarding::NEW;
        guarding.note_refusal(GuardBy::Marker, Errno::INVAL);
        let has_guard = |n: &usize| {
            guarding.draw_lot((if n % 2 == 0 { one } else { other }) << 16);
            guarding.choose(Wanted::AtRandom, SHORT, true) == Some(GuardBy::Rights)
        };
        let n_guards = (0..8000).filter(has_guard).count();
        assert!((800..1200).contains(&n_guards), "{one:x} {other:x}: {n_guards} of 8000");
    }
}
