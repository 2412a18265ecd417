use crate::suggestion::{unknown, unknown_after};

#[test]
fn the_nearest_name_comes_first_and_the_list_is_complete() {
    let text = unknown("workload", "random_mix", ["tiny_hot", "random_mixed", "larson"]);
    assert!(text.contains("Did you mean random_mixed"), "{text}");
    assert!(text.ends_with("There are: tiny_hot, random_mixed, larson"), "{text}");
}

#[test]
fn nothing_is_guessed_for_a_name_like_no_other() {
    assert!(!unknown("workload", "zzzz", ["tiny_hot"]).contains("Did you mean"));
}

#[test]
fn a_prefix_that_all_names_have_makes_none_similar() {
    let names = ["FREESTONE_PROFILE", "FREESTONE_THP", "FREESTONE_DECAY_MS"];
    let guess = |name| unknown_after("FREESTONE_", "option", name, names);
    assert!(!guess("FREESTONE_FOO").contains("Did you mean"), "{}", guess("FREESTONE_FOO"));
    assert!(guess("FREESTONE_DECAI").contains("Did you mean FREESTONE_DECAY_MS?"), "{}", guess("FREESTONE_DECAI"));
}
