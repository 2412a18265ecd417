use crate::suggestion::unknown;

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
