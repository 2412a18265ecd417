//! Says which door the code goes through to the operating system, and refuses a platform that has none, with the way out: without this, its first
//! words would be about missing names.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(door, values(\"linux\", \"bsd\", \"windows\", \"wasm\"))");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (os, arch) = (variable("CARGO_CFG_TARGET_OS"), variable("CARGO_CFG_TARGET_ARCH"));
    match door(&os, &arch, &variable("CARGO_CFG_TARGET_POINTER_WIDTH")) {
        Some(door) => println!("cargo::rustc-cfg=door=\"{door}\""),
        None => {
            // The system's other processors have a door.
            let lacking = if DOORS.iter().any(|(known, _)| *known == os) {
                format!("target_arch = \"{arch}\"")
            } else {
                format!("target_os = \"{os}\"")
            };
            println!(
                "cargo::error=freestone is for 64-bit Linux, Android, Windows, macOS, iOS and FreeBSD, and for wasm32, and not for {}: there, leave the \
                 program with the system's allocator, by #[cfg(not({lacking}))] before #[global_allocator], and by listing freestone under \
                 [target.'cfg(not({lacking}))'.dependencies]",
                variable("TARGET"),
            );
        }
    }
}

/// The systems with 64-bit processors, and their doors.
const DOORS: [(&str, &str); 6] = [
    ("linux", "linux"),
    ("android", "linux"),
    ("macos", "bsd"),
    ("ios", "bsd"),
    ("freebsd", "bsd"),
    ("windows", "windows"),
];

/// The name of the door to a platform.
fn door(os: &str, arch: &str, pointer_bits: &str) -> Option<&'static str> {
    if arch == "wasm32" {
        return Some("wasm");
    }
    let (_, door) = DOORS.into_iter().find(|(known, _)| *known == os)?;
    // On Windows thread-local storage is read in assembly.
    (pointer_bits == "64" && (door != "windows" || arch == "x86_64")).then_some(door)
}
