//! Link options of the shared library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=order.ld");
    for option in [
        "-Wl,-soname,libfreestone.so.0",
        // An allocator cannot be unloaded: blocks, thread-exit hooks and fork handlers outlive any `dlclose`.
        "-Wl,-z,nodelete",
        // Its fork handlers have to be the first registered, before any constructor of another library runs.
        "-Wl,-z,initfirst",
        "-Wl,-z,relro,-z,now",
        // One page-aligned segment less to touch at start.
        "-Wl,-z,noseparate-code",
        "-Wl,--hash-style=gnu",
        // There is no such function: what the C library's start files define is empty, and would be the only code that is executed at its place.
        "-Wl,-fini=freestone_has_none",
        "-fuse-ld=bfd",
    ] {
        println!("cargo::rustc-cdylib-link-arg={option}");
    }
    let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo::rustc-cdylib-link-arg=-Wl,-T,{directory}/order.ld");
    match std::env::var("CARGO_CFG_TARGET_ENV").as_deref() {
        // `src/deep_binding.rs` says why it has no such name in the archive.
        Ok("gnu") => {
            println!("cargo::rustc-cdylib-link-arg=-Wl,--defsym=dlopen=freestone_0_1_0_dlopen");
            // `src/malloc.rs` says why.
            for name in ["malloc", "free", "calloc", "realloc", "memalign", "valloc", "pvalloc"] {
                println!("cargo::rustc-cdylib-link-arg=-Wl,--defsym=__libc_{name}={name}");
            }
            println!("cargo::rustc-cdylib-link-arg=-Wl,--defsym=cfree=free");
        }
        // For glibc the crate `libc` says so.
        Ok("musl") => println!("cargo::rustc-cdylib-link-arg=-lc"),
        _ => {}
    }
}
