//! Says which door the code goes through to the operating system, and refuses a platform that has none, with the way out: without this, its first
//! words would be about missing names.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(door, values(\"linux\", \"bsd\", \"windows\", \"wasm\"))");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    match door(
        &variable("CARGO_CFG_TARGET_OS"),
        &variable("CARGO_CFG_TARGET_FAMILY"),
        &variable("CARGO_CFG_TARGET_ARCH"),
        &variable("CARGO_CFG_TARGET_POINTER_WIDTH"),
    ) {
        Some(door) => println!("cargo::rustc-cfg=door=\"{door}\""),
        None => println!(
            "cargo::error=freestone is for 64-bit Linux, Android, Windows, macOS, iOS and FreeBSD, and for wasm32, and not for {}: there, leave the \
             program with the system's allocator, by #[cfg(not(target_os = \"{}\"))] before #[global_allocator], and by listing freestone under \
             [target.'cfg(not(target_os = \"{1}\"))'.dependencies]",
            variable("TARGET"),
            variable("CARGO_CFG_TARGET_OS"),
        ),
    }
}

/// The name of the door to a platform.
fn door(os: &str, family: &str, arch: &str, pointer_bits: &str) -> Option<&'static str> {
    match (os, pointer_bits) {
        _ if family == "wasm" || family.split(',').any(|it| it == "wasm") => (arch == "wasm32").then_some("wasm"),
        ("linux" | "android", "64") => Some("linux"),
        ("macos" | "ios" | "freebsd", "64") => Some("bsd"),
        ("windows", "64") if arch == "x86_64" => Some("windows"),
        _ => None,
    }
}
