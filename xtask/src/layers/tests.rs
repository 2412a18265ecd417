use super::*;
use crate::samples::Sample;
use crate::source::Crate;

const SAMPLE: &str = "# words\ncrates: base < os < heap\ncrates: base < pool\nmodules: a, b < c < d\n";

fn read(files: &[(&str, &str)]) -> Crate {
    Crate::read(Sample::new(files).folder()).expect("the sample parses")
}

fn pair(from: &str, to: &str) -> Pair {
    (from.to_owned(), to.to_owned())
}

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
fn an_upward_use_is_refused_with_its_file_and_line() {
    let krate = read(&[
        ("lib.rs", "mod c; mod d;"),
        ("c.rs", "mod low; #[cfg(test)] mod tests;"),
        ("c/low.rs", "\nuse crate::d::Top;"),
        ("c/tests.rs", "use crate::d::Top;"),
        ("d.rs", "pub struct Top;"),
    ]);
    let complaints = complaints_of(&krate, &Order::read(SAMPLE, "modules"), &Allowed::default(), true);
    assert_eq!(complaints, ["c/low.rs:2: c names d, which is not below it in layers.dag"]);
}

#[test]
fn files_that_name_each_other_by_way_of_a_third_are_a_circle() {
    let krate = read(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "pub struct A; use crate::b::B;"),
        ("b.rs", "pub struct B;\n\nuse crate::c::C;"),
        ("c.rs", "pub struct C;\nuse crate::a::A;"),
    ]);
    let found = circles(&krate, &[]);
    assert_eq!(found.complaints, ["a.rs:1 names b.rs, b.rs:3 names c.rs, c.rs:2 names a.rs"]);
    let cut = circles(&krate, &[pair("c.rs", "a.rs")]);
    assert!(cut.complaints.is_empty() && cut.idle.is_empty(), "one allowed arrow cuts it");
    assert_eq!(circles(&krate, &[pair("a.rs", "c.rs")]).idle, [pair("a.rs", "c.rs")], "there is no such arrow");
}

#[test]
fn a_parent_and_a_child_that_use_each_other_are_a_circle() {
    let krate = read(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod b; use b::B; pub struct A(B);"),
        ("a/b.rs", "pub struct B; use super::A;"),
    ]);
    assert_eq!(circles(&krate, &[]).complaints, ["a.rs:1 names a/b.rs, a/b.rs:1 names a.rs"]);
}

#[test]
fn an_allowance_has_a_reason_and_is_for_one_crate() {
    let text = "circle: lab a.rs -> b.rs because they are one\nopaque: os c.rs because the kernel requires it\n";
    let lab = Allowed { arrows: vec![pair("a.rs", "b.rs")], ..Allowed::default() };
    assert_eq!(Allowed::read(text, "lab").expect("well formed"), lab);
    assert_eq!(Allowed::read(text, "os").expect("well formed").opaque, ["c.rs"]);
    assert!(Allowed::read("circle: lab a.rs -> b.rs\n", "lab").is_err(), "no reason");
    assert!(Allowed::read("circle: lab a.rs because it is one\n", "lab").is_err(), "no arrow");
}

#[test]
fn an_untyped_pointer_needs_an_allowance_in_the_heap_crates() {
    let krate = read(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "struct A { owner: AtomicPtr<c_void> }"),
        ("b.rs", "fn b(x: Option<*mut ()>) {}"),
        ("c.rs", "fn c() -> *mut c_void { loop {} } #[cfg(test)] fn t(x: *const c_void) {}"),
    ]);
    let complaints = opaque_complaints(&krate, &["b.rs".into(), "c.rs".into()]);
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert!(complaints[0].starts_with("a.rs:1:") && complaints[1].starts_with("c.rs has no untyped pointer"));
}

#[test]
fn dependencies_for_tests_do_not_count() {
    let manifest = "[dependencies]\nfreestone-base.workspace = true\nheap = { package = \"freestone\" }\n\
                    [dev-dependencies]\nfreestone-os = \"1\"\n";
    let named: Vec<_> = crates_named(manifest).into_iter().collect();
    assert_eq!(named, ["base", "freestone"]);
}
