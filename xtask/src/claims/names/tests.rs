use super::*;

fn index() -> Index {
    let mut index = Index { files: vec!["crates/x/src/thread/bins.rs".into()], ..Index::default() };
    let file = syn::parse_file(
        "struct Bins { len: u8 } impl Bins { fn pop(&self) {} } impl Word for u32 { fn put(&self) {} } enum E { A } mod m { fn f() {} }",
    );
    index.add_file("crates/x/src/thread/bins.rs", &file.expect("the sample parses"));
    index.words.extend(["Bins", "pop", "len", "E", "A", "m", "f", "push", "madvise", "u32", "MAX"].map(str::to_owned));
    index
}

#[test]
fn what_exists_may_be_named() {
    let index = index();
    let names = [
        "thread/bins.rs",
        "bins.rs",
        "Bins",
        "Bins::pop",
        "Bins::pop()",
        "Bins::len",
        "E::A",
        "m::f",
        "u32::MAX",
        "madvise",
        "x",
        "a+b",
        "8 MiB",
    ];
    for name in names {
        assert_eq!(complaint(&index, &[], "docs/a.md", name), None, "{name}");
    }
}

#[test]
fn what_was_renamed_or_removed_is_found() {
    let index = index();
    for name in ["thread/refill.rs", "Shelf", "Bins::push", "E::B", "outbox_of", "m::g"] {
        assert!(complaint(&index, &[], "docs/a.md", name).is_some(), "{name}");
    }
}

#[test]
fn commands_and_steps_exist() {
    for text in
        ["cargo xtask test --only layers", "cargo xtask hotpath --bless", "cargo xtask test --only NAME", "cargo test"]
    {
        assert_eq!(command_complaint(&["layers"], text), None, "{text}");
    }
    for text in ["cargo xtask hotpaths", "cargo xtask test --only layer"] {
        assert!(command_complaint(&["layers"], text).is_some(), "{text}");
    }
}
