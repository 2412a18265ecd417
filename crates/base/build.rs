//! Tells the code what this compiler has: each is newer than the oldest compiler that builds the crate.

use std::process::Command;

/// The names that the code asks for, and the minor version of Rust that brought each.
const SINCE: [(&str, u32); 3] = [("asm_jumps", 87), ("unpredictable", 88), ("cold_path", 95)];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = minor_version();
    for (name, since) in SINCE {
        println!("cargo::rustc-check-cfg=cfg({name})");
        if version.is_none_or(|minor| minor >= since) {
            println!("cargo::rustc-cfg={name}");
        }
    }
}

/// The number behind the first dot of `rustc 1.95.0 (…)`; `None` if the compiler says something else, as one of a later edition of Rust would.
fn minor_version() -> Option<u32> {
    let output = Command::new(std::env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.strip_prefix("rustc 1.")?.split('.').next()?.parse().ok()
}
