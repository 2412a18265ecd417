//! Generates the macro `locked!`: the version of each registry crate, from the lock file.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=../Cargo.lock");
    let lock = fs::read_to_string("../Cargo.lock").expect("the workspace has a lock file");
    let mut arms = String::new();
    for package in lock.split("[[package]]") {
        let field = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)?.strip_suffix('"'));
        if let (Some(name), Some(version)) = (field("name = \""), field("version = \"")) {
            // What follows a plus sign is metadata.
            let version = version.split('+').next().unwrap_or(version);
            if name.ends_with("-sys") {
                arms.push_str(&format!("    ({name:?}) => {{ {version:?} }};\n"));
            }
        }
    }
    let text = format!(
        "/// The version of a registry crate, as this workspace's lock file has it.\n#[macro_export]\nmacro_rules! locked {{\n{arms}}}\n"
    );
    let folder = env::var("OUT_DIR").expect("cargo names a folder for what is made");
    fs::write(Path::new(&folder).join("locked.rs"), text).expect("cargo's folder can be written");
}
