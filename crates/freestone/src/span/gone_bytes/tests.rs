use super::*;
use freestone_base::units::Pages;

fn span(fresh: u64) -> Span {
    let span = Span::none();
    span.pages.set(Pages(1));
    span.fresh.set(fresh);
    span
}

#[test]
fn what_went_back_inside_spans_that_ended_is_taken_again_once_and_in_what_others_have_left_alone() {
    let (gone, uncarved) = (GoneBytes::none(), Uncarved::new());
    let taken_by = |has_memory| {
        let (new, before) = (span(0xFFFF), uncarved.bytes_and_ended());
        new.fresh_has_memory.set(has_memory);
        new.fresh_is_zero.set(!has_memory);
        gone.take_again(&new, &uncarved);
        before - uncarved.bytes_and_ended()
    };
    let never_carved = span(0xFFF0);
    never_carved.fresh_is_zero.set(true);
    gone.count(&never_carved, 4096);
    assert_eq!(taken_by(true), 0);
    (0..3).for_each(|_| gone.count(&span(0xFFF0), 4096));
    assert_eq!(taken_by(false), 0);
    assert_eq!([true; 4].map(taken_by), [64 << 10, 64 << 10, 16 << 10, 0]);
}
