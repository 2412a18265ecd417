use super::arrows::arrows;
use super::attributes::is_for_tests;
use super::*;
use crate::samples::Sample;

/// The arrows of a crate of these files, as `from to` pairs, sorted.
fn arrows_of(files: &[(&str, &str)]) -> Vec<String> {
    let sample = Sample::new(files);
    let krate = Crate::read(sample.folder()).expect("the sample parses");
    let mut pairs: Vec<_> = arrows(&krate)
        .keys()
        .map(|&(from, to)| format!("{} {}", krate.files[from].path, krate.files[to].path))
        .collect();
    pairs.sort();
    pairs
}

#[test]
fn a_name_counts_for_the_file_that_defines_it_through_re_exports() {
    let found = arrows_of(&[
        ("lib.rs", "mod page; mod user; pub use page::Heap;"),
        ("page.rs", "mod heap; pub use heap::Heap; pub(crate) use heap::Heap as Other;"),
        ("page/heap.rs", "pub struct Heap;"),
        ("user.rs", "use crate::Heap; fn f(_: crate::page::Other, _: Heap) {}"),
    ]);
    assert_eq!(found, ["user.rs page/heap.rs"]);
}

#[test]
fn declaring_and_passing_on_a_module_is_no_arrow_but_using_it_is() {
    let found = arrows_of(&[
        ("lib.rs", "mod a; mod b; pub use a::A; use b::B; fn f(_: B) {}"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "pub struct B;"),
    ]);
    assert_eq!(found, ["lib.rs b.rs"]);
}

#[test]
fn a_parent_that_uses_what_it_passes_on_has_an_arrow() {
    let found = arrows_of(&[("lib.rs", "mod a; pub use a::A; fn f(_: A) {}"), ("a.rs", "pub struct A;")]);
    assert_eq!(found, ["lib.rs a.rs"]);
}

#[test]
fn paths_in_expressions_macros_and_function_bodies_are_seen() {
    let files = [("lib.rs", "mod a; mod b; mod c; mod d;"), ("a.rs", "pub const A: u32 = 1; pub fn made() {}")];
    let with = |user| arrows_of(&[files[0], files[1], ("b.rs", user), ("c.rs", ""), ("d.rs", "")]);
    for user in [
        "fn f() -> u32 { crate::a::A }",
        "fn f() { println!(\"{}\", super::a::A); }",
        "fn f() { use crate::a::made; made(); }",
        "use crate::a; fn f() { a::made(); }",
        "use super::a::*; fn f() -> u32 { A }",
        "macro_rules! m { () => { $crate::a::made() } }",
        "mod inner { fn f() { super::super::a::made(); } }",
    ] {
        assert_eq!(with(user), ["b.rs a.rs"], "{user}");
    }
    assert!(with("use crate::a; // crate::a::A").is_empty(), "a module alone, and a comment");
}

#[test]
fn test_code_is_left_out() {
    let found = arrows_of(&[
        ("lib.rs", "mod a; mod b; #[cfg(any(test, loom))] mod t;"),
        ("a.rs", "pub struct A;"),
        (
            "b.rs",
            "#[cfg(test)] mod tests; #[cfg(all(test, loom))] use crate::a::A; #[cfg(test)] fn f(_: crate::a::A) {}",
        ),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_condition_is_for_tests_if_it_names_test_and_not_its_absence() {
    let of = |text: &str| is_for_tests(&syn::parse_str::<syn::ItemFn>(text).expect("a function").attrs);
    assert!(of("#[cfg(test)] fn f() {}") && of("#[cfg(all(test, loom))] fn f() {}"));
    assert!(!of("#[cfg(not(test))] fn f() {}") && !of("#[cfg(loom)] fn f() {}") && !of("fn f() {}"));
}

#[test]
fn every_crate_of_the_workspace_is_read() {
    let members = std::fs::read_dir(crate::process::root().join("crates")).expect("the folder of the crates");
    let with_sources = members.flatten().filter(|entry| entry.path().join("src").is_dir());
    let mut names: Vec<_> = with_sources.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.push("xtask".into());
    names.sort();
    let mut known = CRATES.map(str::to_owned);
    known.sort();
    assert_eq!(names, known);
}
