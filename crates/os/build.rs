//! Refuses a platform that the crate has no door to, with the way out: without this, its first words would be about missing names.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let is_known = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_POINTER_WIDTH") == "64";
    if !is_known {
        println!(
            "cargo::error=freestone is for 64-bit Linux so far, and not for {}: there, leave the program with the system's allocator, by \
             #[cfg(target_os = \"linux\")] before #[global_allocator], and by listing freestone under \
             [target.'cfg(target_os = \"linux\")'.dependencies]",
            variable("TARGET")
        );
    }
}
