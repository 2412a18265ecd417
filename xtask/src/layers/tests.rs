use super::*;

const DAG: &str = "# bottom first\nspan:\npage: span\napi: page span\ncrates/os: crates/base\ncrates/base:\n";

#[test]
fn an_upward_module_is_seen_and_a_downward_one_is_not() {
    let dag = parse(DAG).unwrap();
    let folder = std::env::temp_dir().join(format!("freestone-layers-{}", std::process::id()));
    fs::create_dir_all(folder.join("span")).unwrap();
    fs::write(folder.join("page.rs"), "use crate::span::List; // crate::api is only a word here\n").unwrap();
    fs::write(folder.join("span/list.rs"), "use crate::{api, span};\n").unwrap();
    let upward = check_modules(&dag, &folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(upward, ["span/list.rs names crate::api"]);
}

#[test]
fn an_upward_dependency_is_seen_unless_it_is_for_tests() {
    let dag = parse(DAG).unwrap();
    let manifest = "[dependencies]\nfreestone-os.workspace = true\n[dev-dependencies]\nfreestone.workspace = true\n";
    assert_eq!(check_dependencies(&dag, "base", manifest), ["crate base depends on os"]);
    assert!(check_dependencies(&dag, "os", "[dependencies]\nfreestone-base.workspace = true\n").is_empty());
}

#[test]
fn a_line_without_a_colon_is_refused() {
    assert!(parse("span page").is_err());
}
