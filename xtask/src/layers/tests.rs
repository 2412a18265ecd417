use super::*;

const SAMPLE: &str = "# words\ncrates: base < os < heap\ncrates: base < pool\nmodules: a, b < c < d\n";

#[test]
fn a_module_may_name_what_is_below_it_and_nothing_else() {
    let order = Order::read(SAMPLE, "modules");
    assert_eq!(order.complaint("d", "a"), None);
    assert_eq!(order.complaint("c", "c"), None);
    assert!(order.complaint("c", "d").is_some(), "upward");
    assert!(order.complaint("a", "b").is_some(), "sideways");
    assert!(order.complaint("c", "stranger").is_some(), "a module that has no place");
    assert!(order.complaint("stranger", "a").is_some(), "a module that has no place");
}

#[test]
fn two_lines_about_one_crate_add_up() {
    let order = Order::read(SAMPLE, "crates");
    assert_eq!(order.complaint("pool", "base"), None);
    assert!(order.complaint("pool", "os").is_some());
    assert!(order.complaint("heap", "pool").is_some());
}

#[test]
fn an_upward_use_is_found_in_source_and_one_in_a_comment_is_not() {
    let named =
        modules_named("use crate::span::Layout; // crate::api\nuse crate::{thread, config::Settings};\ncrate::Stats");
    let names: Vec<_> = named.iter().map(String::as_str).collect();
    assert_eq!(names, ["config", "span", "thread"]);
}

#[test]
fn a_bad_tree_is_refused_and_names_the_file() {
    let folder = std::env::temp_dir().join(format!("layers-{}", std::process::id()));
    fs::create_dir_all(folder.join("c/tests")).expect("a folder for the sample");
    fs::write(folder.join("c/low.rs"), "use crate::d::Top;\n").expect("a sample");
    fs::write(folder.join("c/tests/ok.rs"), "use crate::d::Top;\n").expect("a sample");
    let complaints = complaints_of_modules(&folder, &Order::read(SAMPLE, "modules"));
    fs::remove_dir_all(&folder).expect("the sample goes away");
    assert_eq!(complaints.expect("readable"), ["c/low.rs: c names d, which is not below it in layers.dag"]);
}

#[test]
fn dependencies_for_tests_do_not_count() {
    let manifest = "[dependencies]\nfreestone-base.workspace = true\nheap = { package = \"freestone\" }\n\
                    [dev-dependencies]\nfreestone-os = \"1\"\n";
    let named: Vec<_> = crates_named(manifest).into_iter().collect();
    assert_eq!(named, ["base", "freestone"]);
}
