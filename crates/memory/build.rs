//! Link options of the library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for option in [
        "-Wl,-soname,libfreestone_memory.so.0",
        // Addresses of its functions are bound all over the process.
        "-Wl,-z,nodelete",
        "-Wl,-z,relro,-z,now",
        "-Wl,-z,noseparate-code",
        "-Wl,--hash-style=gnu",
        "-fuse-ld=bfd",
    ] {
        println!("cargo::rustc-cdylib-link-arg={option}");
    }
    // For glibc the crate `libc` says so.
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|environment| environment == "musl") {
        println!("cargo::rustc-cdylib-link-arg=-lc");
    }
}
